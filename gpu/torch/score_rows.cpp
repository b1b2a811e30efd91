// Primitives on scores [H, n]: pooling along time, reduction over GQA groups, sums, products, z-scores. Scores are
// small, so each primitive is a few whole-tensor operations.
#include "gpu/torch/torch_engine.h"
#include "gpu/torch/torch_tensor.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/avg_pool1d.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/max_pool1d.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>

#include <algorithm>
#include <cassert>
#include <vector>

namespace kvscope::gpu {

namespace {

/// z-scores of chunks [H, chunks, rows], over each chunk of a head or jointly over all heads.
at::Tensor standardised(const at::Tensor& chunks, const Standardisation& how) {
    constexpr double kRounding = 0x1.0p-22; // four times that of a float
    const std::vector<std::int64_t> over = how.jointly ? std::vector<std::int64_t>{0, 2} : std::vector<std::int64_t>{2};
    const double count = static_cast<double>(chunks.size(2) * (how.jointly ? chunks.size(0) : 1));
    const at::Tensor mean = chunks.sum(over, true) / count, centred = chunks - mean;
    const double divisor = count - (how.sample ? 1 : 0);
    const at::Tensor squares = centred.square().sum(over, true);
    const at::Tensor deviation = divisor > 0 ? (squares / divisor).sqrt() : squares * 0;
    // Scores that differ only by rounding are constant (C3); NaN compares false and stays.
    const at::Tensor constant = deviation <= kRounding * chunks.abs().amax(over, true);
    return at::where(constant, 0.0, centred / deviation.clamp_min(how.floor));
}

} // namespace

Tensor TorchEngine::pool(const Tensor& scores, PoolKind kind, std::int64_t width) const {
    assert(width % 2 == 1);
    const at::Tensor rows = numbersOf(scores).to(at::kDouble);
    // Average: zero padding, constant divisor. Max: no padding, NaN wins.
    const std::vector<std::int64_t> window = {width}, step = {1}, border = {width / 2};
    return tensorOf(kind == PoolKind::Average ? at::avg_pool1d(rows, window, step, border)
                                              : at::max_pool1d(rows, window, step, border));
}

Tensor TorchEngine::reduceGroups(const Tensor& scores, std::span<const std::int32_t> gqaGroupOf,
                                 std::int64_t numKvHeads, GroupRule rule) const {
    assert(static_cast<std::int64_t>(gqaGroupOf.size()) == scores.size(0));
    const at::Tensor rows = numbersOf(scores).to(at::kDouble);
    std::vector<at::Tensor> reduced;
    for (std::int32_t kv = 0; kv < numKvHeads; ++kv) {
        std::vector<std::int64_t> heads;
        for (std::size_t h = 0; h < gqaGroupOf.size(); ++h)
            if (gqaGroupOf[h] == kv)
                heads.push_back(static_cast<std::int64_t>(h));
        assert(!heads.empty());
        const at::Tensor group = rows.index_select(0, m_device.listOf(heads));
        if (rule == GroupRule::Max)
            reduced.push_back(group.amax(0));
        else
            reduced.push_back(rule == GroupRule::Sum ? group.sum(0) : group.sum(0) / static_cast<double>(heads.size()));
    }
    return tensorOf(at::stack(reduced, 0));
}

Tensor TorchEngine::scale(const Tensor& scores, double factor) const {
    return tensorOf(numbersOf(scores).to(at::kDouble) * factor);
}

Tensor TorchEngine::blend(const Tensor& a, const Tensor& b, double weight) const {
    // Two roundings, as on the CPU: the product, then the sum.
    return tensorOf(numbersOf(a).to(at::kDouble) + numbersOf(b).to(at::kDouble) * weight);
}

Tensor TorchEngine::multiply(const Tensor& a, const Tensor& b) const {
    return tensorOf(numbersOf(a).to(at::kDouble) * numbersOf(b).to(at::kDouble));
}

Tensor TorchEngine::standardise(const Tensor& scores, const Standardisation& how) const {
    const at::Tensor rows = numbersOf(scores).to(at::kDouble);
    const std::int64_t n = rows.size(1), step = how.chunk > 0 ? std::min(how.chunk, std::max<std::int64_t>(1, n)) : n;
    if (n == 0)
        return scores;
    const std::int64_t whole = n / step * step;
    std::vector<at::Tensor> parts = {
        standardised(rows.narrow(1, 0, whole).reshape({rows.size(0), n / step, step}), how).flatten(1)};
    if (whole < n)
        parts.push_back(standardised(rows.narrow(1, whole, n - whole).unsqueeze(1), how).flatten(1));
    return tensorOf(at::cat(parts, 1));
}

} // namespace kvscope::gpu
