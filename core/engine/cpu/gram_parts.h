#pragma once

#include "core/engine/cpu/kernels.h"

#include <Eigen/Core>

#include <cstdint>
#include <vector>

namespace kvscope::cpu {

/// Width of rows that are padded to whole steps of lanes.
constexpr std::int64_t paddedTo(std::int64_t step, std::int64_t d) { return (d + step - 1) / step * step; }

/// Rows are processed in parts that depend on the number of rows alone.
inline constexpr std::int64_t kPartRows = 1024;
constexpr std::int64_t partsOf(std::int64_t rows) { return (rows + kPartRows - 1) / kPartRows; }

/// Partial Gram matrices of the parts of a head's rows, upper triangles, which are added in the order of the parts.
class GramParts {
public:
    using Multiply = void (*)(const Product&);

    /// Rows of `width` numbers, `stride` apart, a multiple of 8.
    GramParts(std::int64_t parts, std::int64_t width, std::int64_t stride)
        : m_width(width), m_stride(stride), m_sums(static_cast<std::size_t>(parts)) {}

    /// Adds the products of rows [count, stride] to a part, row after row.
    void add(std::int64_t part, Multiply multiply, const double* rows, std::int64_t count);
    Eigen::MatrixXd sum() const;

private:
    std::int64_t m_width, m_stride;
    std::vector<std::vector<double>> m_sums; ///< of each part [stride, stride]; empty until rows are added to it
};

/// The columns of W [d, columns] as lanes of a product: [d, stride], zeros up to a multiple of `step` columns.
template <class Real> class DirectionLanes {
public:
    DirectionLanes(const Eigen::MatrixXd& directions, std::int64_t step)
        : m_step(step), m_values(Values::Zero(directions.rows(), paddedTo(step, directions.cols()))) {
        m_values.leftCols(directions.cols()) = directions.cast<Real>();
        for (std::int64_t first = 0; first < stride(); first += step) {
            std::int64_t depth = directions.rows();
            while (depth > 0 && m_values.row(depth - 1).segment(first, step).isZero(0)) --depth;
            m_depths.push_back(depth);
        }
    }

    std::int64_t stride() const { return m_values.cols(); }
    const Real* at(std::int64_t column) const { return m_values.data() + column; }
    /// Rows of W up to the last non-zero one in the step of columns from `column` on; not all if W is triangular.
    std::int64_t depth(std::int64_t column) const { return m_depths[column / m_step]; }

private:
    using Values = Eigen::Matrix<Real, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
    std::int64_t m_step;
    Values m_values;
    std::vector<std::int64_t> m_depths;
};

} // namespace kvscope::cpu
