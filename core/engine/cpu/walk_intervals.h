#pragma once

#include "core/engine/balancing_walk.h"
#include "core/engine/cpu/kernels.h"

#include <tbb/cache_aligned_allocator.h>

#include <array>
#include <vector>

namespace kvscope::cpu {

/// The sums y of a balancing walk in float, 32 rows at a time, each with a bound on its distance from the sum that the
/// contract computes in double. Where the bound cannot change a sign, no double is needed.
class WalkIntervals {
public:
    explicit WalkIntervals(const Kernels& kernels) : m_kernels(kernels) {}

    /// Reads the walk's rows: keys [dk], values [dv] (none: no values), centre [dk] or empty. False where floats cannot
    /// hold the walk, or nothing could be said about its signs.
    bool begin(const BalancingWalk& walk, const std::vector<const float*>& keys, std::int64_t keyDepth,
               const std::vector<const float*>& values, std::int64_t valueDepth, const std::vector<double>& centre);

    /// Sums of rows [begin, end), at most 32 of them, over the rows before `begin`, whose signs are known.
    void fillPanel(std::int64_t begin, std::int64_t end);
    void setSign(std::int64_t row, double sign) { m_signs[row] = static_cast<float>(sign); }
    double* sums() { return m_y.data(); } ///< y of the panel's lanes, so far
    /// Bound on |y - sums()[lane]| for a lane of the panel, once the panel's rows before it have been added.
    double bound(std::int64_t lane) const;
    /// M of the panel's row against its lanes.
    const double* entries(std::int64_t row) const { return m_matrix.data() + row * kMaxLanes; }

private:
    template <class T> using Aligned = std::vector<T, tbb::cache_aligned_allocator<T>>;

    bool boundErrors(const BalancingWalk& walk, const std::vector<const float*>& keys,
                     const std::vector<double>& centre);

    const Kernels& m_kernels;
    Aligned<float> m_keys, m_values, m_keyLanes, m_valueLanes; ///< rows padded with zeros to whole panels
    std::int64_t m_keyDepth = 0, m_valueDepth = 0, m_begin = 0;
    Aligned<float> m_signs, m_sizes, m_reaches;
    std::vector<double> m_keyNorms, m_valueNorms;
    float m_logScale = 1, m_logShift = 0, m_valueScale = 1, m_valueConstant = 0;
    double m_perReach = 0, m_perSize = 0, m_slack = 0;
    Aligned<double> m_matrix = Aligned<double>(static_cast<std::size_t>(kMaxLanes * kMaxLanes));
    std::array<double, kMaxLanes> m_y{}, m_sizeSums{}, m_reachSums{};
};

} // namespace kvscope::cpu
