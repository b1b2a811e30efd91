// The d x d sums of every covariance and Gram matrix: parts of the rows are summed in parallel, and partial sums are
// added in row order.
#include "core/engine/cpu/row_moments.h"

#include <algorithm>
#include <functional>

namespace kvscope::cpu {

namespace {

constexpr std::int64_t kRowsPerPanel = 64;

RowMoments emptyMoments(std::int64_t d) {
    const std::int64_t stride = (d + kLaneStep - 1) / kLaneStep * kLaneStep;
    return {stride, std::vector<double>(static_cast<std::size_t>(stride * stride)),
            std::vector<double>(static_cast<std::size_t>(stride))};
}

void addPanel(const Kernels& kernels, const double* panel, std::int64_t count, RowMoments& moments) {
    // Only the upper triangle, in stripes of up to 32 lanes: stripe [first, first + width) needs factors up to its end.
    for (std::int64_t first = 0; first < moments.stride; first += kMaxLanes) {
        const std::int64_t width = std::min(kMaxLanes, moments.stride - first);
        kernels.exactProduct({.lanes = panel + first,
                              .laneStride = moments.stride,
                              .laneCount = width,
                              .factors = panel,
                              .factorCount = first + width,
                              .factorStride = 1,
                              .depthStride = moments.stride,
                              .depth = count,
                              .out = moments.products.data() + first,
                              .outStride = moments.stride,
                              .accumulate = true});
    }
    for (std::int64_t r = 0; r < count; ++r)
        for (std::int64_t c = 0; c < moments.stride; ++c) moments.sums[c] += panel[r * moments.stride + c];
}

RowMoments momentsOfPart(const Kernels& kernels, const float* rows, std::int64_t n, std::int64_t d) {
    RowMoments moments = emptyMoments(d);
    std::vector<double> panel(static_cast<std::size_t>(kRowsPerPanel * moments.stride));
    for (std::int64_t first = 0; first < n; first += kRowsPerPanel) {
        const std::int64_t count = std::min(kRowsPerPanel, n - first);
        for (std::int64_t r = 0; r < count; ++r)
            std::copy_n(rows + (first + r) * d, d, panel.begin() + r * moments.stride);
        addPanel(kernels, panel.data(), count, moments);
    }
    return moments;
}

void addTo(std::vector<double>& to, const std::vector<double>& from) {
    std::ranges::transform(to, from, to.begin(), std::plus<>{});
}

} // namespace

RowMoments rowMoments(const Workers& workers, const Kernels& kernels, const float* rows, std::int64_t n, std::int64_t d,
                      Progress& progress) {
    const std::int64_t parts = (n + kMomentRows - 1) / kMomentRows;
    std::vector<RowMoments> partial(static_cast<std::size_t>(parts));
    workers.each(parts, [&](std::int64_t part) {
        const std::int64_t begin = part * kMomentRows, count = std::min(kMomentRows, n - begin);
        partial[part] = momentsOfPart(kernels, rows + begin * d, count, d);
        progress.advance(static_cast<double>(count));
    });
    RowMoments total = emptyMoments(d);
    for (const RowMoments& part : partial) { // in row order, independent of threads
        addTo(total.products, part.products);
        addTo(total.sums, part.sums);
    }
    return total;
}

} // namespace kvscope::cpu
