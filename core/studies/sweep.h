#pragma once

#include "core/policies/policy_spec.h"
#include "core/studies/policy_work.h"

#include <functional>
#include <string>
#include <vector>

namespace kvscope {

/// A parameter with the values to try, as typed.
struct VariedParameter {
    std::string id;
    std::vector<std::string> values;
};

/// All combinations. Rows come in the order capture, layer, policy, varied values (last one fastest), budget, seed.
struct SweepRequest {
    std::vector<std::shared_ptr<const CaptureReader>> captures;
    std::vector<PolicySpec> policies;
    std::vector<Budget> budgets;            ///< for policies without a budget of their own
    std::vector<VariedParameter> varied;    ///< for the policies that have the parameter; at least one must
    std::vector<std::uint64_t> seeds = {0}; ///< a policy that draws no random numbers runs with the first only
    std::string cut = "default";
    std::vector<int> layers;                         ///< empty: all that the capture holds
    std::vector<std::string> measures = {};          ///< further measures by id (core/metrics/measures.h)
    bool countWork = false;                          ///< fills SweepRow::work
    std::shared_ptr<const RandomSource> random = {}; ///< in place of the generator, whatever the seed; null: drawn
};

struct SweepRow {
    std::shared_ptr<const RunResult> result;
    double keptTokens = 0;   ///< tokens that a query head attends to, mean over the KV heads
    double retention = 0;    ///< keptTokens / tokens before the cut: the realised budget
    double storedTokens = 0; ///< what a KV head stores, in tokens with a key and a value each, mean
    double outputError = 0;  ///< mean over the query heads of their means; NaN when not measured
    double retainedMass = 0;
    std::vector<double> measures;  ///< means over the heads; NaN where the selection has no scores to measure
    std::uint64_t storedBytes = 0; ///< keys and values of the kept tokens, all KV heads
    Work work;                     ///< of the choice without any cache (core/studies/policy_work.h); 0 unless asked for
};

/// Checks what can be checked before any computation, and calls `row` for each row on the calling thread. Reads one
/// layer ahead and leaves none behind in the runner's cache. Progress counts rows. Throws Error or Cancelled.
void runSweep(const LayerRunner& runner, const SweepRequest& request, const Checkpoint& checkpoint,
              const std::function<void(const SweepRow&)>& row);

/// Names of the columns: capture, capture_hash, layer, policy, variant, spec, a column per varied parameter (empty
/// where the policy does not have it), cut, cut_token, budget, requested_tokens, kept_tokens, retention, stored_tokens,
/// seed, output_error, retained_mass, a column per further measure, operations and bytes_touched where they are
/// counted, queries, seen_queries, skipped, features_ms, combine_ms, select_ms, measure_ms, stored_bytes, simulated,
/// engine, arithmetic, notes. Times are those of the computation, also where a row took the value from the cache. The
/// first budget of a layer has the time in which the attention over all budgets of its policy was computed.
std::vector<std::string> sweepColumns(const SweepRequest& request);
/// The row as texts, one per column; empty: no value. Numbers read back exactly, except times and operations.
std::vector<std::string> sweepFields(const SweepRequest& request, const SweepRow& row);

} // namespace kvscope
