// A head's rows for leverage in float: sketched, centred, with their Gram matrix, and squared lengths after a small
// matrix.
#include "core/engine/cpu/float_rows.h"

#include <algorithm>

namespace kvscope::cpu {

namespace {

constexpr std::int64_t kRowsPerStep = 48, kRowsPerTile = 12;

struct StepScratch {
    AlignedMemory<double> wide;
    AlignedMemory<float> images;
};

} // namespace

FloatRows::FloatRows(const Workers& workers, const Kernels& kernels, const float* rows, std::int64_t n,
                     std::int64_t width, const float* sketch, std::int64_t d, bool centred)
    : m_workers(workers), m_kernels(kernels), m_rows(n), m_width(d), m_stride(paddedTo(kFloatLaneStep, d)) {
    m_values.atLeast(n * m_stride);
    AlignedMemory<float> lanes;
    std::fill_n(lanes.atLeast(width * m_stride), width * m_stride, 0.0F);
    for (std::int64_t c = 0; c < width; ++c) std::copy_n(sketch + c * d, d, lanes.data() + c * m_stride);
    GramParts products(partsOf(n), d, m_stride);
    std::vector<double> sums(static_cast<std::size_t>(partsOf(n) * m_stride));
    eachStep([&](std::int64_t part, std::int64_t first, std::int64_t count, StepScratch& scratch) {
        float* out = m_values.data() + first * m_stride;
        for (std::int64_t r = 0; r < count; r += kRowsPerTile) { // fetches rows during the computation of others
            prefetch(rows + (first + r + kRowsPerTile) * width, kRowsPerTile * width);
            m_kernels.fastProduct({.lanes = lanes.data(),
                                   .laneStride = m_stride,
                                   .laneCount = m_stride,
                                   .factors = rows + (first + r) * width,
                                   .factorCount = std::min(kRowsPerTile, count - r),
                                   .factorStride = width,
                                   .depth = width,
                                   .start = nullptr,
                                   .scaling = 1,
                                   .out = out + r * m_stride,
                                   .outStride = m_stride});
        }
        double* wide = scratch.wide.atLeast(kRowsPerStep * m_stride);
        m_kernels.widen(out, count * m_stride, wide);
        products.add(part, m_kernels.exactProduct, wide, count);
        if (centred) m_kernels.addRows(out, count, m_stride, nullptr, sums.data() + part * m_stride);
    });
    m_gram = products.sum();
    if (centred) centre(sums);
}

// (K - 1 m^T)^T (K - 1 m^T) = K^T K - n m m^T.
void FloatRows::centre(const std::vector<double>& sums) {
    m_mean.setZero(m_width);
    for (std::int64_t part = 0; part < partsOf(m_rows); ++part) // in the order of the parts
        m_mean += Eigen::Map<const Eigen::VectorXd>(sums.data() + part * m_stride, m_width);
    m_mean /= static_cast<double>(m_rows);
    m_removed = m_mean.squaredNorm() * static_cast<double>(m_rows);
    m_gram -= static_cast<double>(m_rows) * m_mean * m_mean.transpose();
}

template <class Step> void FloatRows::eachStep(const Step& step) const {
    m_workers.each(partsOf(m_rows), [&](std::int64_t part) {
        StepScratch scratch;
        const std::int64_t end = std::min(m_rows, (part + 1) * kPartRows);
        for (std::int64_t first = part * kPartRows; first < end; first += kRowsPerStep)
            step(part, first, std::min(kRowsPerStep, end - first), scratch);
    });
}

bool FloatRows::fits(const Eigen::MatrixXd& directions) const {
    constexpr double kMostCondition = 0x1.0p17; // by Frobenius norms; measured errors were below 5e-4
    return directions.cols() == m_width &&
           (m_gram.trace() + m_removed) * directions.squaredNorm() <= kMostCondition * kMostCondition;
}

void FloatRows::scores(const Eigen::MatrixXd& directions, float* scores) const {
    const DirectionLanes<float> lanes(directions, kFloatLaneStep);
    const std::int64_t columns = lanes.stride();
    Eigen::VectorXf start = Eigen::VectorXf::Zero(columns);
    if (m_mean.size() > 0) start.head(directions.cols()) = -(directions.transpose() * m_mean).cast<float>();
    eachStep([&](std::int64_t, std::int64_t first, std::int64_t count, StepScratch& scratch) {
        float* out = scratch.images.atLeast(kRowsPerStep * columns);
        double* lengths = scratch.wide.atLeast(kRowsPerStep);
        const float* rows = m_values.data() + first * m_stride;
        prefetch(rows + count * m_stride, kRowsPerStep * m_stride);
        for (std::int64_t column = 0; column < columns; column += kFloatLaneStep)
            m_kernels.fastProduct({.lanes = lanes.at(column),
                                   .laneStride = columns,
                                   .laneCount = kFloatLaneStep,
                                   .factors = rows,
                                   .factorCount = count,
                                   .factorStride = m_stride,
                                   .depth = lanes.depth(column),
                                   .start = start.data() + column,
                                   .scaling = 1,
                                   .out = out + column,
                                   .outStride = columns});
        m_kernels.rowProducts(out, count, columns, nullptr, nullptr, lengths);
        for (std::int64_t r = 0; r < count; ++r) scores[first + r] = static_cast<float>(std::min(lengths[r], 1.0));
    });
}

} // namespace kvscope::cpu
