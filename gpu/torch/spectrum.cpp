// Covariances and Gram matrices of a head's rows and their eigenvalues: singular values, operator norms of all
// prefixes, principal axes and projections on them.
#include "gpu/torch/torch_engine.h"
#include "gpu/torch/torch_tensor.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/linalg_eigh.h>
#include <ATen/ops/linalg_eigvalsh.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cassert>
#include <vector>

namespace kvscope::gpu {

namespace {

constexpr std::int64_t kMostMatrices = 64; // eigenvalue problems between two stop points

/// K^T K [d, d] and the sum [d] of rows [n, d], in double.
struct Moments {
    at::Tensor products, sums;
};

Moments momentsOf(const at::Tensor& rows, Steps& steps) {
    const std::int64_t n = rows.size(0), d = rows.size(1);
    const auto wide = rows.options().dtype(at::kDouble);
    Moments moments{at::zeros({d, d}, wide), at::zeros({d}, wide)};
    steps.batches(n, 16.0 * static_cast<double>(d), 1, [&](std::int64_t begin, std::int64_t count) {
        const at::Tensor part = rows.narrow(0, begin, count).to(at::kDouble);
        moments.products += at::matmul(part.transpose(0, 1), part);
        moments.sums += part.sum(0);
    });
    return moments;
}

/// Square root; rounding may make a zero eigenvalue negative.
at::Tensor rootOf(const at::Tensor& eigenvalues) { return eigenvalues.clamp_min(0).sqrt(); }

/// Axes [components, d]. The sign of an eigenvector is arbitrary; here its largest absolute entry (ties: the first) is
/// positive.
at::Tensor withFixedSigns(const at::Tensor& axes) {
    const at::Tensor largest = axes.gather(1, axes.abs().argmax(1, /*keepdim=*/true));
    return at::where(largest < 0, -axes, axes);
}

} // namespace

HostTensor TorchEngine::singularValues(const Tensor& rows, const RowPositions& chosen,
                                       const Checkpoint& checkpoint) const {
    const at::Tensor all = numbersOf(rows);
    const std::int64_t heads = all.size(0), d = all.size(2);
    assert(chosen.empty() || static_cast<std::int64_t>(chosen.size()) == heads);
    double total = 1; // one more than the rows, so never 0
    for (std::int64_t h = 0; h < heads; ++h)
        total += chosen.empty() ? static_cast<double>(all.size(1))
                                : static_cast<double>(chosen[static_cast<std::size_t>(h)].size());
    Steps steps(m_device, checkpoint, total);
    std::vector<at::Tensor> grams;
    std::vector<std::int64_t> counts;
    for (std::int64_t h = 0; h < heads; ++h) {
        at::Tensor mine = all.select(0, h);
        if (!chosen.empty()) mine = mine.index_select(0, m_device.listOf(chosen[static_cast<std::size_t>(h)]));
        grams.push_back(momentsOf(mine, steps).products);
        counts.push_back(mine.size(0));
    }
    const at::Tensor roots = rootOf(at::linalg_eigvalsh(at::stack(grams)).flip(-1)); // all heads at once
    const at::Tensor exist = at::arange(d, roots.options().dtype(at::kLong)) < m_device.listOf(counts).unsqueeze(1);
    return hostTensorOf(at::where(exist, roots, 0.0));
}

HostTensor TorchEngine::prefixOperatorNorms(const Tensor& rows, std::int64_t first, std::int64_t count,
                                            const Checkpoint& checkpoint) const {
    const at::Tensor all = numbersOf(rows);
    const std::int64_t heads = all.size(0), d = all.size(2);
    assert(first >= 0 && first + count <= all.size(1));
    Steps steps(m_device, checkpoint, static_cast<double>(heads * (first + count)));
    const at::Tensor norms = at::zeros({heads, count}, all.options());
    for (std::int64_t h = 0; h < heads; ++h) {
        at::Tensor gram = momentsOf(all.select(0, h).narrow(0, 0, first), steps).products;
        steps.batches(count, 32.0 * static_cast<double>(d * d), 0, [&](std::int64_t begin, std::int64_t size) {
            const at::Tensor part = all.select(0, h).narrow(0, first + begin, size).to(at::kDouble);
            const at::Tensor prefixes = gram + (part.unsqueeze(2) * part.unsqueeze(1)).cumsum(0);
            gram = prefixes.select(0, size - 1);
            steps.slices(size, kMostMatrices, 1, [&](std::int64_t first, std::int64_t some) {
                const at::Tensor values = at::linalg_eigvalsh(prefixes.narrow(0, first, some));
                norms.select(0, h).narrow(0, begin + first, some).copy_(rootOf(values.select(1, d - 1)));
            });
        });
    }
    return hostTensorOf(norms);
}

PrincipalAxes TorchEngine::principalAxes(const Tensor& keys, std::int64_t head, int components,
                                         const Checkpoint& checkpoint) const {
    const at::Tensor rows = numbersOf(keys).select(0, head);
    const double n = static_cast<double>(rows.size(0));
    assert(n > 0 && components > 0);
    Steps steps(m_device, checkpoint, n);
    const Moments moments = momentsOf(rows, steps);
    const at::Tensor mean = moments.sums / n;
    // In double the difference loses a factor (mean / spread)^2 of 2^53, harmless for keys; cancellation may leave a
    // tiny negative variance.
    const at::Tensor covariance = (moments.products - mean.unsqueeze(1) * mean.unsqueeze(0) * n) / std::max(1.0, n - 1);
    covariance.diagonal().clamp_min_(0);
    const auto [values, vectors] = at::linalg_eigh(covariance);
    const std::int64_t count = std::min<std::int64_t>(components, rows.size(1));
    const at::Tensor axes = withFixedSigns(vectors.flip(1).narrow(1, 0, count).transpose(0, 1));
    PrincipalAxes out{hostTensorOf(mean), hostTensorOf(axes), {}, covariance.diagonal().sum().item<double>()};
    for (const double variance : doublesOf(values.flip(0).narrow(0, 0, count).clamp_min(0)))
        out.explainedVariance.push_back(out.totalVariance > 0 ? variance / out.totalVariance : 0.0);
    return out;
}

HostTensor TorchEngine::project(const Tensor& keys, std::int64_t head, const PrincipalAxes& axes) const {
    const at::Tensor rows = numbersOf(keys).select(0, head);
    assert(axes.axes.shape[1] == rows.size(1));
    const at::Tensor directions = m_device.upload(axes.axes).to(at::kDouble).transpose(0, 1);
    // (x - mean) . axis = x . axis - mean . axis
    const at::Tensor offsets = at::matmul(m_device.upload(axes.mean).to(at::kDouble), directions);
    const Checkpoint whole;
    Steps steps(m_device, whole, static_cast<double>(rows.size(0)));
    std::vector<at::Tensor> parts;
    steps.batches(
        rows.size(0), 24.0 * static_cast<double>(rows.size(1)), 1, [&](std::int64_t begin, std::int64_t count) {
            parts.push_back(
                (at::matmul(rows.narrow(0, begin, count).to(at::kDouble), directions) - offsets).to(at::kFloat));
        });
    return hostTensorOf(at::cat(parts, 0));
}

} // namespace kvscope::gpu
