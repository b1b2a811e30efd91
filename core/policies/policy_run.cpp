// Runs the three stages of a policy once: features, scores, choice. block_processing.cpp repeats them.
#include "core/policies/policy_run.h"

#include "core/base/error.h"
#include "core/policies/block_processing.h"
#include "core/policies/common_parameters.h"
#include "core/policies/keep_best.h"

#include <fmt/format.h>

#include <utility>

namespace kvscope {

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
    // A budget in tokens gives no fraction (-1): a policy that computes from a fraction then keeps the tokens exactly.
    asked.retention = budget.unit == Budget::Unit::Fraction ? budget.value : -1;
    const bool whole = leavesWhole(values, input.attention.slidingWindow);
    if (whole && input.recordSteps)
        throw Error({fmt::format("layer {} is left whole, nothing is decided there", input.layer.value),
                     "parameter whole_layers", "Choose another layer, or whole_layers=none"});
    RowSelection chosen = whole ? keepEverything(input) : policy.select(asked, scores, values, count);
    outcome.selection = tokensOfRows(chosen, input);
    outcome.log = std::move(chosen.steps);
    outcome.scores.total = std::move(chosen.total);
    outcome.positions = input.positions;
    outcome.notes = policy.notes(input, values);
    outcome.notes.insert(outcome.notes.end(), chosen.notes.begin(), chosen.notes.end());
    return outcome;
}

PolicyOutcome runPolicy(const Policy& policy, const ParameterValues& values, const Budget& budget,
                        const PolicyInput& input) {
    if (!isOneShot(values) && !leavesWhole(values, input.attention.slidingWindow))
        return runInBlocks(policy, values, budget, input);
    Scores scores = policy.combine(input, policy.features(input, values), values);
    PolicyOutcome outcome = selectOneShot(policy, values, budget, input, scores);
    if (!outcome.scores.total.empty()) scores.total = std::move(outcome.scores.total);
    outcome.scores = std::move(scores);
    return outcome;
}

} // namespace kvscope
