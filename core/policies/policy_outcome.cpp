// Maps the rows that a policy chose to tokens.
#include "core/policies/policy_outcome.h"

namespace kvscope {

namespace {

std::vector<TokenIndex> tokensOf(const std::vector<TokenIndex>& rows, const PolicyInput& input, std::int64_t head) {
    if (input.positions.empty()) return rows;
    std::vector<TokenIndex> tokens;
    tokens.reserve(rows.size());
    for (const TokenIndex row : rows) tokens.push_back(input.tokenAt(head, row));
    return tokens;
}

} // namespace

Selection tokensOfRows(const RowSelection& rows, const PolicyInput& input) {
    Selection selection;
    for (std::size_t h = 0; h < rows.heads.size(); ++h) {
        const TopKHead& chosen = rows.heads[h];
        HeadSelection head;
        head.kept = tokensOf(chosen.kept, input, static_cast<std::int64_t>(h));
        head.protectedTokens.assign(head.kept.begin(), head.kept.begin() + rows.protectedFirst);
        head.protectedTokens.insert(head.protectedTokens.end(), head.kept.end() - rows.protectedLast, head.kept.end());
        head.margin = chosen.margin;
        if (!rows.weights.empty()) {
            const RowWeights& weights = rows.weights[h];
            head.numeratorWeights = weights.numerator;
            head.denominatorWeights = weights.denominator;
            head.storedKeys = weights.storedKeys;
            head.storedValues = weights.storedValues;
        }
        selection.heads.push_back(std::move(head));
    }
    for (std::size_t q = 0; q < rows.queryHeads.size(); ++q) {
        const std::int32_t kvHead = input.attention.gqaGroupOf[q];
        selection.heads[kvHead].queryHeads.push_back({static_cast<std::int32_t>(q),
                                                      tokensOf(rows.queryHeads[q].kept, input, kvHead),
                                                      rows.queryHeads[q].margin});
    }
    return selection;
}

} // namespace kvscope
