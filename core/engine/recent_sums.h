#pragma once

#include "core/base/index.h"
#include "core/engine/requests.h"

#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

namespace kvscope {

/// Sums over unweighted kept sets, p_i = e^(l_ij - lse_j): of p_i v_i, p_i and p_i^2. They are multiples of a quantum
/// that depends on the values alone, and every term is rounded down to a multiple, so that a sum does not depend on the
/// order of its terms, and subtracting a term restores the sum without it exactly.
struct KeptSums {
    std::vector<std::vector<TokenIndex>> kept; ///< ascending, as WeightedAttentionInput::kept
    std::vector<double> sums;                  ///< in the layout of the engine that made them
};

/// The last few sums over kept sets of one layer's queries. Threads may share it.
class RecentSums {
public:
    static constexpr std::size_t kMost = 4;             ///< those of three panes and one more
    static constexpr std::size_t kMostBytes = 12 << 20; ///< of each

    /// [Hq, w]: lse_j over all that query j sees.
    explicit RecentSums(HostTensor logSumExps) : m_logSumExps(std::move(logSumExps)) {}

    const HostTensor& logSumExps() const { return m_logSumExps; }
    /// The sums whose sets differ from `kept` in the fewest tokens; null where none differs in fewer than `most`.
    std::shared_ptr<const KeptSums> nearest(std::span<const WeightedSet> kept, std::int64_t most) const;
    /// Adds `sums` and drops `before`, the sums from which they were made (null: none).
    void replace(const KeptSums* before, std::shared_ptr<const KeptSums> sums);

private:
    HostTensor m_logSumExps;
    mutable std::mutex m_mutex;
    std::deque<std::shared_ptr<const KeptSums>> m_sums; ///< newest last
};

} // namespace kvscope
