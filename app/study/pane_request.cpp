// From a pane to its run request and to its name in views.
#include "app/study/pane_request.h"

#include "core/base/error.h"
#include "core/capture/named_dataset.h"
#include "core/policies/policy.h"
#include "core/policies/policy_needs.h"
#include "views/common/view_facts.h"
#include "views/scene/axes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace kvscope {

namespace {

std::string joined(const std::string& first, const std::string& second) {
    return first + (first.empty() || second.empty() ? "" : ", ") + second;
}

bool readsScores(const PolicyCard& card) {
    return std::find(card.needs.begin(), card.needs.end(), Need::ImportedScores) != card.needs.end();
}

/// Whether the list states a parameter that differs from the variant that it names; false where this program does not
/// know policy, variant or parameter.
bool isEdited(const RecordedSelection& list) {
    const Policy* policy = findPolicy(list.policy);
    if (!policy || readsScores(policy->card())) return false;
    try {
        const ParameterValues plain = specOfVariant(list.policy, list.variant).values;
        return std::ranges::any_of(list.parameters, [&](const auto& stated) {
            return plain.has(stated.first) && plain.text(stated.first) != stated.second;
        });
    } catch (const Error&) { // a variant of another program
        return false;
    }
}

/// A window has few panes; the rows of a table may be more than there are letters.
char letterOf(std::size_t pane) { return static_cast<char>('A' + std::min<std::size_t>(pane, 25)); }

/// The policy's name in a list is free text if another program wrote the list.
PaneName identityOfList(const RecordedSelection& list, std::size_t pane, const Cut& cut, const Budget& budget) {
    const Policy* policy = findPolicy(list.policy);
    const std::string name = policy ? policy->card().name : list.policy;
    const std::string ownCut = cut.evaluatedOnSeen ? "cut none" : fmt::format("cut {}", cut.token);
    return {
        letterOf(pane), list.policy, name.empty() ? "Recorded list" : name + " (recorded)",
        joined(joined(joined(list.variant, isEdited(list) ? "edited" : ""), ownCut), "budget " + budgetWords(budget))};
}

/// The budget as the file states it, else in tokens: a quality names a curve that may be missing beside the list.
Budget budgetOf(const RecordedSelection& list) {
    try {
        Budget budget = Budget::parse(list.budgetRequested);
        if (budget.unit != Budget::Unit::Quality) return budget;
    } catch (const Error&) { // free text of another program
    }
    return {Budget::Unit::Tokens, list.budgetTokens > 0 ? static_cast<double>(list.budgetTokens) : list.budgetKept};
}

} // namespace

RunRequest resolvePane(const PaneRequest& pane) {
    RunRequest request = pane.run;
    if (pane.recordedPath.empty()) {
        if (pane.isSecond && readsImportedScores(request.policy))
            throw Error({"imported scores belong to one capture", "file",
                         "Show them on the first capture alone, without a second one"});
        return request;
    }
    auto recorded = std::make_shared<RecordedSelection>(readSelection(pane.recordedPath));
    checkAgainst(*recorded, *request.capture);
    request.cut = cutOf(*recorded, *request.capture);
    request.budget = budgetOf(*recorded);
    request.seed = recorded->seed;
    request.recorded = std::move(recorded);
    return request;
}

PaneName policyIdentityOf(const PolicySpec& policy, std::size_t pane) {
    const PolicyCard& card = policyById(policy.policy).card();
    std::string variant = policy.variant.empty() && !card.variants.empty() ? card.variants.front().id : policy.variant;
    ParameterValues plain = specOfVariant(policy.policy, policy.variant).values;
    if (readsScores(card)) { // named by its data set
        const std::string file = policy.values.text("file");
        variant = file.empty() ? variant : file.substr(file.rfind('/') + 1);
        plain.setText("file", file);
    }
    const bool edited = policy.values != plain;
    return {letterOf(pane), card.id, card.name, joined(variant, edited ? "edited" : "")};
}

std::vector<std::pair<std::string, PolicySpec>> policiesOfScores(const std::string& capturePath) {
    const auto& all = allPolicies();
    const auto reader = std::find_if(all.begin(), all.end(), [](const Policy* p) { return readsScores(p->card()); });
    std::vector<std::pair<std::string, PolicySpec>> found;
    for (const NamedDataset& source : scoresBeside(capturePath)) {
        PolicySpec spec = specOfVariant((*reader)->card().id, {});
        spec.values.setText("file", source.file + ":" + source.path);
        found.emplace_back(source.path.substr(1), spec);
    }
    return found;
}

PaneName policyIdentityOf(const RunRequest& run, std::size_t pane) {
    return run.recorded ? identityOfList(*run.recorded, pane, run.cut, run.budget) : policyIdentityOf(run.policy, pane);
}

std::vector<std::pair<std::string, std::string>> factsOfList(const RunRequest& recorded) {
    const RecordedSelection& list = *recorded.recorded;
    std::vector<std::pair<std::string, std::string>> facts = {
        {"Policy", list.policy}, {"Variant", list.variant}, {"Capture", list.captureFile}};
    facts.insert(facts.end(), list.parameters.begin(), list.parameters.end());
    facts.insert(facts.end(), {{"Budget", budgetWords(recorded.budget)},
                               {"Kept per head, mean", formatCount(std::llround(list.budgetKept))},
                               {"Cut", recorded.cut.label},
                               {"Seed", std::to_string(list.seed)},
                               {"Engine", joined(list.engine, list.arithmetic)}});
    std::erase_if(facts, [](const auto& fact) { return fact.second.empty(); });
    return facts;
}

bool hasOwnBudget(const RunResult& result, const Budget& asked) {
    if (!result.request.recorded || result.request.budget == asked) return false;
    if (asked.unit == Budget::Unit::Quality) return true;
    const auto tokens = [&](const Budget& budget) {
        return retentionOf(budget, result.visible) * static_cast<double>(result.visible);
    };
    return std::abs(tokens(result.request.budget) - tokens(asked)) >= 1;
}

std::string resultKey(const PaneRequest& pane) {
    if (!pane.recordedPath.empty()) return pane.recordedPath + "@" + pathStamp(pane.recordedPath);
    const RunRequest& run = pane.run;
    return fmt::format("{}|{}|{}{}|{}", run.policy.text(), run.budget.text(), run.cut.token,
                       run.cut.evaluatedOnSeen ? "s" : "", run.seed);
}

} // namespace kvscope
