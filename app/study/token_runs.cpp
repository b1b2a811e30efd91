// Half-open ranges, so that a long selection is a short text.
#include "app/study/token_runs.h"

#include "app/study/object_reader.h"
#include "core/base/error.h"

namespace kvscope {

nlohmann::ordered_json toRuns(const std::vector<TokenIndex>& tokens) {
    auto runs = nlohmann::ordered_json::array();
    for (std::size_t i = 0; i < tokens.size();) {
        std::size_t j = i + 1;
        while (j < tokens.size() && tokens[j] == tokens[j - 1] + 1) ++j;
        runs.push_back({tokens[i], tokens[j - 1] + 1});
        i = j;
    }
    return runs;
}

std::vector<TokenIndex> fromRuns(const nlohmann::ordered_json& runs) {
    constexpr std::int64_t kLimit = std::int64_t{1} << 24;
    std::vector<TokenIndex> tokens;
    for (const nlohmann::ordered_json& run : runs) {
        const auto begin = wholeNumber<std::int64_t>(run.at(0)), end = wholeNumber<std::int64_t>(run.at(1));
        const std::int64_t after = tokens.empty() ? 0 : tokens.back() + 1;
        if (begin < after || end <= begin || end > kLimit)
            throw Error({"The selected tokens are not ascending half-open ranges", "", "write [[begin, end], ...]"});
        for (std::int64_t token = begin; token < end; ++token) tokens.push_back(static_cast<TokenIndex>(token));
    }
    return tokens;
}

} // namespace kvscope
