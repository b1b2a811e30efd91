// A head's rows for leverage, in double: sketched, centred, with Gram matrix or triangular factor, and squared lengths
// after a small matrix.
#include "core/engine/cpu/double_rows.h"

#include <Eigen/QR>

#include <algorithm>
#include <cassert>

namespace kvscope::cpu {

namespace {

constexpr std::int64_t kRowsPerStep = 24;

using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

} // namespace

DoubleRows::DoubleRows(const Workers& workers, const Kernels& kernels, const float* rows, std::int64_t n,
                       std::int64_t width, const float* sketch, std::int64_t d, bool gramAhead)
    : m_workers(workers), m_kernels(kernels), m_rows(n), m_width(d), m_stride(paddedTo(kLaneStep, d)),
      m_floats(sketch == nullptr) {
    m_values.atLeast(n * m_stride);
    if (gramAhead) m_ahead.emplace(parts(), m_width, m_stride);
    m_workers.each(parts(), [&](std::int64_t index) {
        fill(rows, sketch, width, index, [&](std::int64_t first, std::int64_t count) {
            if (m_ahead) m_ahead->add(index, multiply(), m_values.data() + first * m_stride, count);
        });
    });
}

DoubleRows::Part DoubleRows::part(std::int64_t index) const {
    const std::int64_t begin = index * kPartRows;
    return {begin, std::min(kPartRows, m_rows - begin), m_values.data() + begin * m_stride};
}

template <class Step>
void DoubleRows::fill(const float* rows, const float* sketch, std::int64_t width, std::int64_t index,
                      const Step& step) {
    const Part to = part(index);
    AlignedMemory<double> lanes, panel;
    double* wide = lanes.atLeast(sketch ? width * m_stride : 0);
    if (sketch && m_width < m_stride) std::fill(wide, wide + width * m_stride, 0.0);
    for (std::int64_t c = 0; sketch && c < width; ++c)
        m_kernels.widen(sketch + c * m_width, m_width, wide + c * m_stride);
    panel.atLeast(sketch ? kRowsPerStep * width : 0);
    for (std::int64_t r = to.begin; r < to.begin + to.count; r += kRowsPerStep) {
        const std::int64_t count = std::min(kRowsPerStep, to.begin + to.count - r);
        double* out = m_values.data() + r * m_stride;
        prefetch(rows + (r + count) * width, kRowsPerStep * width);
        for (std::int64_t i = 0; !sketch && i < count; ++i) {
            m_kernels.widen(rows + (r + i) * width, width, out + i * m_stride);
            std::fill(out + i * m_stride + width, out + (i + 1) * m_stride, 0.0);
        }
        if (sketch) {
            m_kernels.widen(rows + r * width, count * width, panel.data());
            m_kernels.exactProduct({.lanes = wide,
                                    .laneStride = m_stride,
                                    .laneCount = m_stride,
                                    .factors = panel.data(),
                                    .factorCount = count,
                                    .factorStride = width,
                                    .depthStride = 1,
                                    .depth = width,
                                    .out = out,
                                    .outStride = m_stride,
                                    .accumulate = false});
        }
        step(r, count);
    }
}

void DoubleRows::centre() {
    assert(!m_ahead); // its sums would be of the rows before centring
    const auto stride = static_cast<std::size_t>(m_stride);
    std::vector<double> sums(static_cast<std::size_t>(parts()) * stride), mean(stride);
    m_workers.each(parts(), [&](std::int64_t index) {
        const Part rows = part(index);
        double* sum = sums.data() + index * m_stride;
        for (std::int64_t r = 0; r < rows.count; ++r)
            for (std::int64_t c = 0; c < m_stride; ++c) sum[c] += rows.rows[r * m_stride + c];
    });
    for (std::size_t i = 0; i < sums.size(); ++i) // in the order of the parts
        mean[i % stride] += sums[i];
    double square = 0;
    for (double& x : mean) {
        x /= static_cast<double>(m_rows);
        square += x * x;
    }
    m_removed = square * static_cast<double>(m_rows);
    m_floats = false;
    m_workers.each(parts(), [&](std::int64_t index) {
        const Part rows = part(index);
        double* values = m_values.data() + rows.begin * m_stride;
        for (std::int64_t r = 0; r < rows.count; ++r)
            for (std::int64_t c = 0; c < m_stride; ++c) values[r * m_stride + c] -= mean[c];
    });
}

Eigen::MatrixXd DoubleRows::gram() const {
    if (m_ahead) return m_ahead->sum();
    GramParts sums(parts(), m_width, m_stride);
    m_workers.each(parts(), [&](std::int64_t index) {
        const Part rows = part(index);
        for (std::int64_t begin = 0; begin < rows.count; begin += kRowsPerStep)
            sums.add(index, multiply(), rows.rows + begin * m_stride, std::min(kRowsPerStep, rows.count - begin));
    });
    return sums.sum();
}

Eigen::MatrixXd DoubleRows::factor() const {
    const auto triangleOf = [](const Eigen::MatrixXd& rows) -> Eigen::MatrixXd {
        const Eigen::Index most = std::min(rows.rows(), rows.cols());
        return Eigen::HouseholderQR<Eigen::MatrixXd>(rows).matrixQR().topRows(most).triangularView<Eigen::Upper>();
    };
    std::vector<Eigen::MatrixXd> partial(static_cast<std::size_t>(parts()));
    m_workers.each(parts(), [&](std::int64_t index) {
        const Part rows = part(index);
        const Eigen::Map<const RowMajor, 0, Eigen::OuterStride<>> view(rows.rows, rows.count, m_width,
                                                                       Eigen::OuterStride<>(m_stride));
        partial[index] = triangleOf(view);
    });
    Eigen::MatrixXd factor = partial.front();
    for (std::size_t i = 1; i < partial.size(); ++i) { // in the order of the parts
        Eigen::MatrixXd both(factor.rows() + partial[i].rows(), m_width);
        both << factor, partial[i];
        factor = triangleOf(both);
    }
    return factor;
}

void DoubleRows::squaredLengths(const Eigen::MatrixXd& directions, double* lengths) const {
    const DirectionLanes<double> lanes(directions, kLaneStep);
    const std::int64_t columns = lanes.stride();
    m_workers.each(parts(), [&](std::int64_t index) {
        const Part rows = part(index);
        std::vector<double> images(static_cast<std::size_t>(kRowsPerStep * columns));
        std::fill_n(lengths + rows.begin, rows.count, 0.0);
        for (std::int64_t begin = 0; begin < rows.count; begin += kRowsPerStep) {
            const std::int64_t count = std::min(kRowsPerStep, rows.count - begin);
            prefetch(rows.rows + (begin + count) * m_stride, kRowsPerStep * m_stride);
            for (std::int64_t first = 0; first < columns; first += kLaneStep)
                m_kernels.product({.lanes = lanes.at(first),
                                   .laneStride = columns,
                                   .laneCount = kLaneStep,
                                   .factors = rows.rows + begin * m_stride,
                                   .factorCount = count,
                                   .factorStride = m_stride,
                                   .depthStride = 1,
                                   .depth = lanes.depth(first),
                                   .out = images.data() + first,
                                   .outStride = columns,
                                   .accumulate = false});
            for (std::int64_t r = 0; r < count; ++r)
                for (std::int64_t first = 0; first < columns; first += kMaxLanes)
                    m_kernels.addAcrossLanes(images.data() + r * columns, 1, columns, images.data() + r * columns,
                                             first, std::min(columns, first + kMaxLanes),
                                             lengths + rows.begin + begin + r);
        }
    });
}

} // namespace kvscope::cpu
