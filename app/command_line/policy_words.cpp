// CLI11 options with many values would also take the capture that follows them.
#include "app/command_line/command.h"

#include "core/policies/policy.h"

#include <algorithm>
#include <filesystem>

namespace kvscope {

namespace {

const std::string kOption = "--policy";

bool isPolicy(const std::string& word, bool bare) {
    const std::string id = word.substr(0, word.find_first_of(":,@"));
    if (id == word && !bare) return false;
    const auto& policies = allPolicies();
    const bool known = std::ranges::any_of(policies, [&](const Policy* policy) { return policy->card().id == id; });
    return known && !std::filesystem::exists(word);
}

} // namespace

std::vector<std::string> withEachPolicyNamed(const std::vector<std::string>& words) {
    std::vector<std::string> named;
    const bool viewComes = words.size() > 1 && words[0] == "plot" && words[1].starts_with("-");
    bool isValue = false, afterPolicy = false;
    for (const std::string& word : words) {
        const bool further = !isValue && afterPolicy && isPolicy(word, !viewComes);
        if (further) named.push_back(kOption);
        named.push_back(word);
        afterPolicy = further || isValue || word.starts_with(kOption + "=");
        isValue = word == kOption;
    }
    return named;
}

} // namespace kvscope
