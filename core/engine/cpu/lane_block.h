#pragma once

#include "core/engine/cpu/kernels.h"

#include <cstdint>
#include <vector>

namespace kvscope::cpu {

/// Up to 32 rows side by side in double, [d, lanes], padded with zeros to a multiple of 8 lanes.
class LaneBlock {
public:
    LaneBlock(const std::vector<const float*>& rows, std::int64_t d);

    std::int64_t lanes() const { return m_lanes; }
    /// out[k][lane] = sum over c of row[lane][c] * factors[k][c], factors [count, d].
    Product against(const double* factors, std::int64_t count, double* out) const;

private:
    std::int64_t m_depth, m_lanes;
    std::vector<double> m_values;
};

/// Rows of keys or values in double, one panel at a time, which fits into the L1 cache.
inline constexpr std::int64_t kPanelRows = 24;

class Panel {
public:
    Panel(const Kernels& kernels, std::int64_t d)
        : m_kernels(kernels), m_depth(d), m_values(static_cast<std::size_t>(kPanelRows * d)) {}

    /// Rows first .. first + count - 1 of [*, d]; with indices, rows indices[0 .. count - 1].
    const double* fill(const float* rows, std::int64_t first, std::int64_t count, const std::int32_t* indices);

private:
    const Kernels& m_kernels;
    std::int64_t m_depth;
    std::vector<double> m_values;
};

} // namespace kvscope::cpu
