// The similarity of every key to all keys.
#include "gpu/torch/torch_engine.h"
#include "gpu/torch/torch_tensor.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cdist.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>

#include <vector>

namespace kvscope::gpu {

namespace {

constexpr std::int64_t kDifferences = 2; // cdist mode: from differences; |a|^2 + |b|^2 - 2 a.b would cancel

/// 1 / norm; 0 for a zero row (K4). NaN stays.
at::Tensor inverseLengths(const at::Tensor& wide) {
    const at::Tensor lengths = at::linalg_vector_norm(wide, 2, {-1});
    return at::where(lengths > 0, lengths.reciprocal(), lengths);
}

/// Sum over `all` [n, d] of the metric to each of `rows` [r, d]; cosine: times `inverse` [n], 1 / norm of `all`, alone.
at::Tensor sumOverAll(const at::Tensor& rows, const at::Tensor& all, const at::Tensor& inverse,
                      SimilarityMetric metric) {
    if (metric == SimilarityMetric::Euclidean) return at::cdist(rows, all, 2.0, kDifferences).sum(-1);
    const at::Tensor products = at::matmul(rows, all.transpose(-1, -2));
    if (metric == SimilarityMetric::Dot) return products.sum(-1);
    return at::matmul(products, inverse.unsqueeze(-1)).squeeze(-1);
}

} // namespace

HostTensor TorchEngine::pairwiseSums(const Tensor& keys, SimilarityMetric metric, const Checkpoint& checkpoint) const {
    const at::Tensor rows = numbersOf(keys);
    const std::int64_t heads = rows.size(0), n = rows.size(1);
    Steps steps(m_device, checkpoint, static_cast<double>(heads * n));
    std::vector<at::Tensor> sums;
    for (std::int64_t h = 0; h < heads; ++h) {
        const at::Tensor wide = rows.select(0, h).to(at::kDouble);
        const at::Tensor inverse = metric == SimilarityMetric::Cosine ? inverseLengths(wide) : at::Tensor();
        std::vector<at::Tensor> parts;
        steps.batches(n, 16.0 * static_cast<double>(n), 1, [&](std::int64_t begin, std::int64_t count) {
            at::Tensor part = sumOverAll(wide.narrow(0, begin, count), wide, inverse, metric);
            if (metric == SimilarityMetric::Cosine) part = part * inverse.narrow(0, begin, count);
            parts.push_back(part);
        });
        sums.push_back(at::cat(parts, 0));
    }
    return hostTensorOf(at::stack(sums, 0));
}

} // namespace kvscope::gpu
