// The three stages of a policy run once: features over all tokens, scores out of features, and the choice. Block
// processing repeats them and lives in block_processing.cpp.
#include "core/policies/policy.h"

#include "core/base/error.h"
#include "core/base/nearest_name.h"
#include "core/policies/common/block_processing.h"
#include "core/policies/common/common_parameters.h"
#include "core/policies/common/policy_tools.h"

#include <algorithm>

namespace kvscope {

RowSelection Policy::select(const PolicyInput& input, const Scores& scores, const ParameterValues& values,
                            std::int64_t count) const {
    return keepBest(input, scores.total, protection(values, count), count);
}

Protection Policy::protection(const ParameterValues& values, std::int64_t) const {
    return {integerOrZero(values, "protect_first"), integerOrZero(values, "protect_last")};
}

Protection Protection::within(std::int64_t count, std::int64_t rows) const {
    const std::int64_t fitting = std::min({first, count, rows});
    return {fitting, std::min({last, count - fitting, rows - fitting})};
}

std::int64_t Policy::layerCount(LayerIndex, int, std::int64_t, const ParameterValues&, std::int64_t count) const {
    return count;
}

Features Policy::carry(const PolicyInput&, const Features&, const ParameterValues&) const {
    return {};
}

std::vector<std::string> Policy::notes(const PolicyInput&, const ParameterValues&) const {
    return {};
}

ParameterValues variantValues(const PolicyCard& card, std::string_view variant) {
    std::vector<std::string> known;
    for (const PolicyVariant& candidate : card.variants) {
        known.push_back(candidate.id);
        if (candidate.id != variant && !(variant.empty() && &candidate == &card.variants.front()))
            continue;
        ParameterValues values(card.parameters);
        for (const auto& [id, text] : candidate.values)
            values.setText(id, text);
        return values;
    }
    throw Error({"unknown variant '" + std::string(variant) + "' of " + card.id, {}, suggestName(variant, known), {}});
}

bool isOneShot(const ParameterValues& values) {
    return integerOrZero(values, "prompt_block") == 0 && integerOrZero(values, "decode_tokens") == 0;
}

PolicyOutcome selectOneShot(const Policy& policy, const ParameterValues& values, const Budget& budget,
                            const PolicyInput& input, const Scores& scores) {
    const std::int64_t rows = input.rowCount();
    PolicyOutcome outcome;
    outcome.requested = policy.card().usesBudget ? resolveBudget(budget, rows, roundingOf(values)) : rows;
    const std::int64_t count = policy.layerCount(input.layer, input.numLayers, rows, values, outcome.requested);
    PolicyInput asked = input;
    // Tokens name no fraction: -1, so that a policy whose code counts from a fraction keeps them exactly.
    asked.retention = budget.unit == Budget::Unit::Fraction ? budget.value : -1;
    RowSelection chosen = policy.select(asked, scores, values, count);
    outcome.selection = tokensOfRows(chosen, input);
    outcome.log = std::move(chosen.steps);
    outcome.scores = scores;
    if (!chosen.total.empty())
        outcome.scores.total = chosen.total;
    outcome.positions = input.positions;
    outcome.notes = policy.notes(input, values);
    outcome.notes.insert(outcome.notes.end(), chosen.notes.begin(), chosen.notes.end());
    return outcome;
}

PolicyOutcome runPolicy(const Policy& policy, const ParameterValues& values, const Budget& budget,
                        const PolicyInput& input) {
    if (!isOneShot(values))
        return runInBlocks(policy, values, budget, input);
    const Features features = policy.features(input, values);
    return selectOneShot(policy, values, budget, input, policy.combine(input, features, values));
}

} // namespace kvscope
