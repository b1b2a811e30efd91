#pragma once

#include "core/policies/balance/balance_log.h"
#include "core/policies/policy.h"

#include <string>
#include <vector>

namespace kvscope {

/// A walk to run and the keys of its uniforms: its row i draws at (seed, layer, KV head, `round`, `places[i]`, `slot` +
/// 256 * repeats so far).
struct PlannedWalk {
    BalancingWalk walk;                ///< without uniforms
    std::vector<std::uint32_t> places; ///< RandomKey::token of each row
    std::uint32_t round = 0, slot = 0; ///< RandomKey::round and slot
    std::int64_t level = 1, place = 0, tree = 0, bucket = 0;
};

/// Runs planned walks over the rows of an input. A walk that FAILs (|y| above its limit) is repeated with fresh
/// uniforms, at most eight times; then run throws Error. With gamma = 0 and no log, no key is read.
class BalanceWalks {
public:
    /// `centres` [Hkv, d] may be empty. `log` null: no step log.
    BalanceWalks(const PolicyInput& input, Tensor keys, Tensor values, HostTensor centres, BalanceLog* log);

    /// Signs of every walk, in the order of the plans.
    std::vector<std::vector<std::int8_t>> run(const std::vector<PlannedWalk>& plans, const Checkpoint& checkpoint);

    double margin(std::int64_t kvHead) const { return m_margins[kvHead]; }
    std::int64_t repeats() const { return m_repeats; } ///< failed walks so far

private:
    std::vector<double> uniformsOf(const PlannedWalk& plan, std::int64_t repeat) const;
    std::vector<std::int8_t> coins(const PlannedWalk& plan);
    void write(const PlannedWalk& plan, const BalancingWalk& walk, const BalancingSteps& steps, std::int64_t repeat);

    const PolicyInput& m_input;
    BalancingWalks m_batch;
    BalanceLog* m_log;
    std::vector<double> m_margins;
    std::int64_t m_repeats = 0;
};

/// "3 times a walk failed and was repeated".
std::string repeatedText(std::int64_t repeats);

} // namespace kvscope
