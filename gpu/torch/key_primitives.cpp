// Primitives that look at keys alone: norms, anchors, similarity to an anchor and among all keys.
// Rows are widened to double in batches, so that a layer is never stored in double as a whole.
#include "gpu/torch/kernel_calls.h"
#include "gpu/torch/torch_engine.h"
#include "gpu/torch/torch_tensor.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cdist.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <cassert>
#include <vector>

namespace kvscope::gpu {

namespace {

constexpr std::int64_t kDifferences = 2; // cdist mode: from differences; |a|^2 + |b|^2 - 2 a.b would cancel

at::Tensor lengthsOf(const at::Tensor& wide) { return at::linalg_vector_norm(wide, 2, {-1}); }

/// 1 / norm; 0 for a zero row (K4). NaN stays.
at::Tensor inverseLengths(const at::Tensor& wide) {
    const at::Tensor lengths = lengthsOf(wide);
    return at::where(lengths > 0, lengths.reciprocal(), lengths);
}

/// Coordinate-wise; the two middle values of an even count are averaged.
at::Tensor medianOf(const at::Tensor& rows) {
    const std::int64_t n = rows.size(1);
    const at::Tensor sorted = std::get<0>(rows.sort(1));
    if (n % 2 == 1) return sorted.select(1, n / 2);
    return (sorted.select(1, n / 2 - 1).to(at::kDouble) + sorted.select(1, n / 2).to(at::kDouble)) / 2;
}

double bytesOfRow(const at::Tensor& keys) {
    return 24.0 * static_cast<double>(keys.size(0) * keys.size(2)); // three doubles per number
}

/// Sum over all rows [.., n, d] of the metric to each of rows [.., r, d]; `inverse` [.., n]: 1 / norm for the cosine.
at::Tensor sumOverAll(const at::Tensor& rows, const at::Tensor& all, const at::Tensor& inverse,
                      SimilarityMetric metric) {
    if (metric == SimilarityMetric::Euclidean) return at::cdist(rows, all, 2.0, kDifferences).sum(-1);
    const at::Tensor products = at::matmul(rows, all.transpose(-1, -2));
    if (metric == SimilarityMetric::Dot) return products.sum(-1);
    return at::matmul(products, inverse.unsqueeze(-1)).squeeze(-1);
}

} // namespace

HostTensor TorchEngine::rowNorms(const Tensor& keys, const Checkpoint& checkpoint) const {
    Steps steps(m_device, checkpoint, static_cast<double>(keys.size(1)));
    if constexpr (KVSCOPE_HAS_KERNELS)
        if (m_device.runsKernels()) return kernels::rowNorms(m_device, keys);
    const at::Tensor rows = numbersOf(keys);
    std::vector<at::Tensor> parts;
    steps.batches(rows.size(1), bytesOfRow(rows), 1, [&](std::int64_t begin, std::int64_t count) {
        parts.push_back(lengthsOf(rows.narrow(1, begin, count).to(at::kDouble)).to(at::kFloat));
    });
    return hostTensorOf(at::cat(parts, 1));
}

HostTensor TorchEngine::anchor(const Tensor& keys, AnchorKind kind, const Checkpoint& checkpoint) const {
    const std::int64_t heads = keys.size(0), n = keys.size(1), d = keys.size(2);
    assert(n > 0);
    if (kind == AnchorKind::Median) {
        Steps steps(m_device, checkpoint, static_cast<double>(heads));
        std::vector<at::Tensor> parts;
        const at::Tensor rows = numbersOf(keys);
        steps.batches(heads, 24.0 * static_cast<double>(n * d), 1, [&](std::int64_t begin, std::int64_t count) {
            parts.push_back(medianOf(rows.narrow(0, begin, count)));
        });
        return hostTensorOf(at::cat(parts, 0));
    }
    Steps steps(m_device, checkpoint, static_cast<double>(n));
    if constexpr (KVSCOPE_HAS_KERNELS)
        if (m_device.runsKernels()) return kernels::meanAnchor(m_device, keys, kind);
    const at::Tensor rows = numbersOf(keys);
    at::Tensor sum = at::zeros({heads, d}, rows.options().dtype(at::kDouble));
    steps.batches(n, bytesOfRow(rows), 1, [&](std::int64_t begin, std::int64_t count) {
        const at::Tensor wide = rows.narrow(1, begin, count).to(at::kDouble);
        sum += kind == AnchorKind::Mean ? wide.sum(1) : at::bmm(inverseLengths(wide).unsqueeze(1), wide).squeeze(1);
    });
    return hostTensorOf(sum / static_cast<double>(n));
}

HostTensor TorchEngine::similarity(const Tensor& keys, const HostTensor& anchor, SimilarityMetric metric,
                                   const Checkpoint& checkpoint) const {
    assert(anchor.shape == (Shape{keys.size(0), keys.size(2)}));
    Steps steps(m_device, checkpoint, static_cast<double>(keys.size(1)));
    if constexpr (KVSCOPE_HAS_KERNELS)
        if (m_device.runsKernels()) return kernels::similarity(m_device, keys, anchor, metric);
    const at::Tensor rows = numbersOf(keys), anchors = m_device.upload(anchor).to(at::kDouble).unsqueeze(1);
    const at::Tensor anchorLengths = lengthsOf(anchors);
    std::vector<at::Tensor> parts;
    steps.batches(rows.size(1), bytesOfRow(rows), 1, [&](std::int64_t begin, std::int64_t count) {
        const at::Tensor wide = rows.narrow(1, begin, count).to(at::kDouble);
        if (metric == SimilarityMetric::Euclidean) {
            parts.push_back(at::cdist(wide, anchors, 2.0, kDifferences).squeeze(-1).to(at::kFloat));
            return;
        }
        at::Tensor products = at::bmm(wide, anchors.transpose(1, 2)).squeeze(-1);
        if (metric == SimilarityMetric::Cosine) {
            const at::Tensor lengths = lengthsOf(wide) * anchorLengths;
            products = at::where(lengths == 0, lengths, products / lengths);
        }
        parts.push_back(products.to(at::kFloat));
    });
    return hostTensorOf(at::cat(parts, 1));
}

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
