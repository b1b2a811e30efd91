// Accumulated attention: from a window of queries (causal), or from the queries of the key's own chunk. All query heads
// of a GQA group are multiplied with its keys in one product.
#include "gpu/torch/kernel_calls.h"
#include "gpu/torch/logits.h"
#include "gpu/torch/torch_engine.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cassert>
#include <limits>

namespace kvscope::gpu {

namespace {

/// A range of key rows and the time positions of its ends.
struct KeyRange {
    std::int64_t first = 0, count = 0, firstPosition = 0, lastPosition = 0;
};

/// Key rows that some query in [earliest, latest] may see; positions ascend with the rows.
KeyRange visibleKeys(const AttentionInput& input, std::int64_t kv, std::int64_t earliest, std::int64_t latest) {
    const std::int64_t m = input.keys.size(1), window = input.rule.slidingWindow;
    const std::int64_t oldest = window > 0 ? std::max<std::int64_t>(0, earliest - window + 1) : 0;
    if (input.keyPositions.empty()) {
        const std::int64_t first = std::min(oldest, m), end = std::max(first, std::min(m, latest + 1));
        return {first, end - first, first, end - 1};
    }
    const auto& list = input.keyPositions[static_cast<std::size_t>(kv)];
    const auto first = std::lower_bound(list.begin(), list.end(), oldest);
    const auto end = std::upper_bound(first, list.end(), latest);
    if (first == end) return {};
    return {first - list.begin(), end - first, *first, *(end - 1)};
}

/// Column sums over [groups, w] of weights e [groups w, m]: [groups, m].
at::Tensor columnSums(const at::Tensor& exponentials, std::int64_t groups) {
    const at::Tensor inverseSums = inverseSumsOf(exponentials.sum(-1));
    return at::matmul(inverseSums.view({groups, 1, -1}), exponentials.view({groups, -1, exponentials.size(-1)}))
        .squeeze(1);
}

/// Masks keys of a chunk of `length` rows at a distance of the window or more; padding keys stay. logits [.., length,
/// terms].
void hideFar(at::Tensor logits, std::int64_t length, std::int64_t window) {
    if (window == 0 || window >= length) return;
    const auto whole = logits.options().dtype(at::kLong);
    const at::Tensor rows = at::arange(length, whole).unsqueeze(1), terms = at::arange(logits.size(-1), whole);
    const at::Tensor far = (rows - terms).abs().ge(window).logical_and(terms.lt(length));
    logits.masked_fill_(far, -std::numeric_limits<double>::infinity());
}

/// Softmax inside chunks: queries [chunks, groups, C, d], keys [chunks, terms, d] -> sums [groups, chunks, terms].
at::Tensor chunkSums(const at::Tensor& queries, const at::Tensor& keys, const AttentionRule& rule) {
    at::Tensor logits = logitsOf(queries.flatten(1, 2), keys, rule);
    hideFar(logits.view({queries.size(0), queries.size(1), queries.size(2), -1}), queries.size(2), rule.slidingWindow);
    exponentiate(logits, {});
    logits.mul_(inverseSumsOf(logits.sum(-1, true)));
    const at::Tensor perGroup = logits.view({queries.size(0), queries.size(1), queries.size(2), -1});
    return perGroup.sum(2).transpose(0, 1);
}

} // namespace

HostTensor TorchEngine::attentionColumnSums(const AttentionInput& input, const Checkpoint& checkpoint) const {
    requireNoSinks(input.rule);
    const std::int64_t w = input.queries.size(1), m = input.keys.size(1), d = input.keys.size(2);
    assert(static_cast<std::int64_t>(input.rule.gqaGroupOf.size()) == input.queries.size(0));
    const auto type = m_arithmetic == Arithmetic::Fast ? at::kFloat : at::kDouble;
    Steps steps(m_device, checkpoint, static_cast<double>(input.queries.size(0) * w));
    if constexpr (KVSCOPE_HAS_KERNELS)
        if (m_device.runsKernels() && w > 0 && m > 0)
            return kernels::columnSums(m_device, input, m_arithmetic, checkpoint);
    const at::Tensor queries = numbersOf(input.queries), keys = numbersOf(input.keys);
    at::Tensor out = at::zeros({queries.size(0), m}, keys.options());
    for (std::int64_t kv = 0; kv < keys.size(0); ++kv) {
        const std::vector<std::int64_t> heads = queryHeadsOf(input.rule, kv);
        const auto group = static_cast<std::int64_t>(heads.size());
        if (group == 0) continue;
        const at::Tensor mine = queries.index_select(0, m_device.listOf(heads)), wide = keys.select(0, kv).to(type);
        const at::Tensor positions = input.keyPositions.empty()
                                         ? at::arange(m, keys.options().dtype(at::kLong))
                                         : m_device.listOf(input.keyPositions[static_cast<std::size_t>(kv)]);
        at::Tensor sums = at::zeros({group, m}, keys.options().dtype(at::kDouble));
        const double bytes = 24.0 * static_cast<double>(group * (m + d));
        steps.batches(w, bytes, static_cast<double>(group), [&](std::int64_t begin, std::int64_t count) {
            const std::int64_t earliest = input.firstQuery + begin;
            const KeyRange range = visibleKeys(input, kv, earliest, earliest + count - 1);
            if (range.count == 0) return;
            Visible visible;
            for (std::int64_t row = 0; row < group * count; ++row) // the heads of the group one after the other
                visible.addCausal(earliest + row % count, input.rule);
            const at::Tensor rows = mine.narrow(1, begin, count).to(type).reshape({group * count, d});
            at::Tensor block = logitsOf(rows, wide.narrow(0, range.first, range.count), input.rule);
            exponentiate(block, hiddenFrom(m_device, visible, positions.narrow(0, range.first, range.count),
                                           range.firstPosition, range.lastPosition));
            sums.narrow(1, range.first, range.count).add_(columnSums(block, group));
        });
        out.index_copy_(0, m_device.listOf(heads), sums.to(at::kFloat));
    }
    return hostTensorOf(out);
}

HostTensor TorchEngine::attentionChunkSums(const AttentionChunksInput& input, const Checkpoint& checkpoint) const {
    requireNoSinks(input.rule);
    const std::int64_t n = input.keys.size(1), d = input.keys.size(2),
                       size = std::min(input.chunk, std::max<std::int64_t>(1, n));
    assert(input.queries.size(1) == n && input.chunk >= 1 && input.zeroKeys >= 0 && input.uniformRows >= 0);
    const auto type = m_arithmetic == Arithmetic::Fast ? at::kFloat : at::kDouble;
    const std::int64_t whole = n / size, rest = size < input.chunk ? n : n - whole * size;
    Steps steps(m_device, checkpoint, static_cast<double>(input.queries.size(0) * n));
    if constexpr (KVSCOPE_HAS_KERNELS)
        if (m_device.runsKernels() && n > 0) return kernels::chunkSums(m_device, input, m_arithmetic, checkpoint);
    const at::Tensor queries = numbersOf(input.queries), keys = numbersOf(input.keys);
    at::Tensor out = at::zeros({queries.size(0), n}, keys.options());
    for (std::int64_t kv = 0; kv < keys.size(0); ++kv) {
        const std::vector<std::int64_t> heads = queryHeadsOf(input.rule, kv);
        const auto group = static_cast<std::int64_t>(heads.size());
        if (group == 0) continue;
        const at::Tensor where = m_device.listOf(heads), mine = queries.index_select(0, where);
        // Chunks of `length` rows from row `begin` on, a short one with its padding.
        const auto compute = [&](std::int64_t begin, std::int64_t count, std::int64_t length) {
            const bool isShort = length < input.chunk;
            at::Tensor k = keys.select(0, kv).narrow(0, begin, count * length).to(type).view({count, length, d});
            if (isShort) k = at::cat({k, at::zeros({count, input.zeroKeys, d}, k.options())}, 1);
            const at::Tensor q = mine.narrow(1, begin, count * length).to(type).reshape({group, count, length, d});
            at::Tensor sums = chunkSums(q.transpose(0, 1), k, input.rule).narrow(2, 0, length).to(at::kDouble);
            if (isShort) sums = sums + static_cast<double>(input.uniformRows) / static_cast<double>(input.chunk);
            out.narrow(1, begin, count * length).index_copy_(0, where, sums.flatten(1).to(at::kFloat));
        };
        const double bytes = 24.0 * static_cast<double>(group * size * (size + d));
        steps.batches(size < input.chunk ? 0 : whole, bytes, static_cast<double>(group * size),
                      [&](std::int64_t begin, std::int64_t count) { compute(begin * size, count, size); });
        if (rest > 0) compute(n - rest, 1, rest);
    }
    return hostTensorOf(out);
}

} // namespace kvscope::gpu
