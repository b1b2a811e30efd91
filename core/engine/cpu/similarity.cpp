// Similarity of every key to its head's anchor: cosine, dot product or Euclidean distance (KeyDiff Eq. 8, Table 15).
#include "core/engine/cpu/cpu_engine.h"
#include "core/engine/cpu/row_blocks.h"

#include <array>
#include <cassert>
#include <cmath>

namespace kvscope::cpu {

namespace {

using Column = std::array<double, kRowsPerBlock>;

void blockSimilarity(const Kernels& kernels, const RowBlock& block, std::int64_t d, const float* anchor,
                     SimilarityMetric metric, Column& result) {
    const std::int64_t count = block.end - block.begin;
    if (metric == SimilarityMetric::Dot)
        return kernels.rowProducts(block.rows, count, d, anchor, result.data(), nullptr);
    if (metric == SimilarityMetric::Euclidean) {
        kernels.rowDistances(block.rows, count, d, anchor, result.data());
        for (std::int64_t r = 0; r < count; ++r) result[r] = std::sqrt(result[r]);
        return;
    }
    Column squares;
    double anchorSquare = 0;
    kernels.rowProducts(anchor, 1, d, nullptr, nullptr, &anchorSquare);
    kernels.rowProducts(block.rows, count, d, anchor, result.data(), squares.data());
    for (std::int64_t r = 0; r < count; ++r) {
        // A square root of each square, because their product underflows for short keys.
        const double norms = std::sqrt(squares[r]) * std::sqrt(anchorSquare);
        double& cosine = result[r];
        cosine = norms > 0 ? cosine / norms : std::isnan(norms) ? norms : 0;
    }
}

} // namespace

HostTensor CpuEngine::similarity(const Tensor& keys, const HostTensor& anchor, SimilarityMetric metric,
                                 const Checkpoint& checkpoint) const {
    const std::int64_t heads = keys.size(0), n = keys.size(1), d = keys.size(2);
    assert(anchor.shape == (Shape{heads, d}));
    std::vector<float> out(static_cast<std::size_t>(heads * n));
    Progress progress(checkpoint, static_cast<double>(heads * blocksPerHead(n)));
    eachRowBlock(m_workers, keys, progress, [&](const RowBlock& block) {
        Column result;
        blockSimilarity(m_kernels, block, d, anchor.data.data() + block.head * d, metric, result);
        float* to = out.data() + block.head * n + block.begin;
        for (std::int64_t r = 0; r < block.end - block.begin; ++r) to[r] = static_cast<float>(result[r]);
    });
    return {{heads, n}, std::move(out)};
}

} // namespace kvscope::cpu
