#pragma once

#include "core/base/host_tensor.h"
#include "core/engine/cpu/kernels.h"

#include <cstdint>
#include <vector>

namespace kvscope::cpu {

struct Neighbour {
    double distance; ///< squared
    std::int32_t row;
    bool operator<(const Neighbour& other) const {
        return distance != other.distance ? distance < other.distance : row < other.row;
    }
};

/// The nearest of finite rows [n, d] by Euclidean distance in double, ties to the lower row. All pairs are compared in
/// float, whose error is bounded; rows that may be among the nearest are compared again in double.
class NearestRows {
public:
    NearestRows(const Kernels& kernels, const HostTensor& rows);

    /// The `count` < n nearest of all other rows to each of rows [begin, end), at most kMaxLanes, in their order.
    std::vector<std::vector<Neighbour>> of(std::int64_t begin, std::int64_t end, std::size_t count) const;

private:
    class Candidates;

    std::vector<Neighbour> nearest(const std::vector<std::int32_t>& candidates, std::int64_t row,
                                   std::size_t count) const;

    const Kernels& m_kernels;
    const HostTensor& m_rows;
    std::int64_t m_count, m_depth;
    double m_error;               ///< bound for half a squared distance, in units of the sum of both rows' squares
    std::vector<float> m_shifted; ///< [n, d] rows minus their mean, scaled so that no coordinate exceeds 1
    std::vector<float> m_lowest;  ///< [n] half the square of a shifted row, less its part of the error
    std::vector<float> m_errors;  ///< [n] a row's part of the error
};

} // namespace kvscope::cpu
