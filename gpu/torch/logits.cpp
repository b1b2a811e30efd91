// Blocks of logits for all attention primitives: products, scaling, softcap, mask, exponentials.
#include "gpu/torch/logits.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/where.h>

#include <algorithm>
#include <cassert>
#include <limits>

namespace kvscope::gpu {

namespace {

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

} // namespace

at::Tensor logitsOf(const at::Tensor& rows, const at::Tensor& keys, const AttentionRule& rule) {
    at::Tensor logits = at::matmul(rows, keys.transpose(-1, -2)).mul_(rule.scaling);
    if (rule.softcap > 0) logits.div_(rule.softcap).tanh_().mul_(rule.softcap);
    return logits;
}

at::Tensor hiddenFrom(const TorchDevice& device, const Visible& visible, const at::Tensor& positions,
                      std::int64_t first, std::int64_t last) {
    assert(!visible.from.empty() && visible.from.size() == visible.end.size());
    const bool late = *std::min_element(visible.end.begin(), visible.end.end()) <= last;
    const bool early = *std::max_element(visible.from.begin(), visible.from.end()) > first;
    if (!late && !early) return {};
    const at::Tensor keys = positions.unsqueeze(0);
    const at::Tensor afterEnd = keys >= device.listOf(visible.end).unsqueeze(1);
    return early ? afterEnd.logical_or(keys < device.listOf(visible.from).unsqueeze(1)) : afterEnd;
}

at::Tensor exponentiate(at::Tensor& logits, const at::Tensor& hidden) {
    if (hidden.defined()) logits.masked_fill_(hidden, kMinusInfinity);
    const at::Tensor rowMax = logits.amax(-1, true);
    // Where a row sees no key rowMax is -infinity: subtracting 0 instead gives e^x = 0 and not NaN.
    logits.sub_(at::where(rowMax == kMinusInfinity, 0.0, rowMax)).exp_();
    return rowMax;
}

at::Tensor inverseSumsOf(const at::Tensor& rowSums) { return at::where(rowSums == 0, rowSums, rowSums.reciprocal()); }

std::vector<std::int64_t> queryHeadsOf(const AttentionRule& rule, std::int64_t kv) {
    std::vector<std::int64_t> heads;
    for (std::size_t h = 0; h < rule.gqaGroupOf.size(); ++h)
        if (rule.gqaGroupOf[h] == kv) heads.push_back(static_cast<std::int64_t>(h));
    return heads;
}

} // namespace kvscope::gpu
