// Sum of a key's similarities to all keys of its head (KeyDiff Eq. 7): all n^2 pairs, in blocks of up to 32 rows
// against panels of rows. In exact arithmetic a sum of cosines equals n ||mu|| times the cosine to the normalised mean
// (K2); it is computed in full so that this can be verified.
#include "core/engine/cpu/cpu_engine.h"
#include "core/engine/cpu/lane_block.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace kvscope::cpu {

namespace {

using Lanes = std::array<double, kMaxLanes>;

struct Head {
    const float* rows;
    std::int64_t n, d;
    std::vector<double> inverseNorms; ///< [n], cosine only; 0 for a zero key
};

Head headOf(const Kernels& kernels, const float* rows, std::int64_t n, std::int64_t d, SimilarityMetric metric) {
    Head head{rows, n, d, {}};
    if (metric != SimilarityMetric::Cosine) return head;
    head.inverseNorms.resize(static_cast<std::size_t>(n));
    kernels.rowProducts(rows, n, d, nullptr, nullptr, head.inverseNorms.data());
    for (double& x : head.inverseNorms) x = x > 0 ? 1 / std::sqrt(x) : x;
    return head;
}

/// sums[lane] += metric between row begin + lane and the `count` rows of the panel starting at row `first`.
void addPanel(const Kernels& kernels, const Head& head, SimilarityMetric metric, const Product& product,
              std::int64_t first, Lanes& sums) {
    if (metric == SimilarityMetric::Euclidean)
        kernels.squaredDifferences(product);
    else
        kernels.exactProduct(product);
    for (std::int64_t k = 0; k < product.factorCount; ++k) {
        const double* row = product.out + k * product.outStride;
        const double factor = head.inverseNorms.empty() ? 1 : head.inverseNorms[first + k];
        for (std::int64_t lane = 0; lane < product.laneCount; ++lane) {
            const double term = metric == SimilarityMetric::Euclidean ? std::sqrt(row[lane]) : row[lane] * factor;
            sums[lane] += term;
        }
    }
}

void blockSums(const Kernels& kernels, const Head& head, SimilarityMetric metric, std::int64_t begin,
               Progress& progress, float* out) {
    const std::int64_t count = std::min(kMaxLanes, head.n - begin);
    std::vector<const float*> rows;
    for (std::int64_t r = 0; r < count; ++r) rows.push_back(head.rows + (begin + r) * head.d);
    const LaneBlock lanes(rows, head.d);
    Panel panel(kernels, head.d);
    std::array<double, kPanelRows * kMaxLanes> products;
    Lanes sums{};
    for (std::int64_t first = 0; first < head.n; first += kPanelRows) {
        const std::int64_t size = std::min(kPanelRows, head.n - first);
        const double* factors = panel.fill(head.rows, first, size, nullptr);
        addPanel(kernels, head, metric, lanes.against(factors, size, products.data()), first, sums);
        if (first % 4080 == 0) // a multiple of the panel, some milliseconds apart
            progress.advance(static_cast<double>(std::min<std::int64_t>(4080, head.n - first)));
    }
    for (std::int64_t lane = 0; lane < count; ++lane) {
        const double factor = head.inverseNorms.empty() ? 1 : head.inverseNorms[begin + lane];
        out[lane] = static_cast<float>(sums[lane] * factor);
    }
}

} // namespace

HostTensor CpuEngine::pairwiseSums(const Tensor& keys, SimilarityMetric metric, const Checkpoint& checkpoint) const {
    const std::int64_t heads = keys.size(0), n = keys.size(1), d = keys.size(2);
    const std::int64_t blocks = (n + kMaxLanes - 1) / kMaxLanes;
    std::vector<float> out(static_cast<std::size_t>(heads * n));
    Progress progress(checkpoint, static_cast<double>(heads * blocks * n));
    const TensorView view = viewOf(keys);
    for (std::int64_t h = 0; h < heads; ++h) {
        const Head head = headOf(m_kernels, view.head(h), n, d, metric);
        m_workers.each(blocks, [&](std::int64_t block) {
            const std::int64_t begin = block * kMaxLanes;
            blockSums(m_kernels, head, metric, begin, progress, out.data() + h * n + begin);
        });
    }
    return {{heads, n}, std::move(out)};
}

} // namespace kvscope::cpu
