// Keeps the best rows of every head by a stable sort, so that ties go to the earlier row on every device.
#include "gpu/torch/kernel_calls.h"
#include "gpu/torch/refusals.h"
#include "gpu/torch/torch_engine.h"
#include "gpu/torch/torch_tensor.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/cat.h>

#include <algorithm>
#include <cassert>
#include <limits>

namespace kvscope::gpu {

namespace {

void refuseNaN(const at::Tensor& scores) {
    const at::Tensor found = scores.isnan();
    if (!found.any().item<bool>())
        return;
    const auto first = integersOf(found.nonzero().select(0, 0)); // ordered by head, then row
    refuseScore(first[0], first[1]);
}

/// The best `free` scores as ascending rows counted from `first` on; margin as in TopKHead.
TopKHead bestRows(const at::Tensor& scores, std::int64_t free, std::int64_t first) {
    TopKHead head;
    head.margin = std::numeric_limits<float>::infinity();
    if (free == 0)
        return head;
    const auto [values, order] = scores.sort(/*stable=*/true, /*dim=*/0, /*descending=*/true);
    const at::Tensor kept = std::get<0>(order.narrow(0, 0, free).sort());
    for (const std::int64_t row : integersOf(kept))
        head.kept.push_back(static_cast<TokenIndex>(first + row));
    if (free < scores.size(0)) {
        const std::vector<double> edge = doublesOf(values.narrow(0, free - 1, 2));
        const auto last = static_cast<float>(edge[0]), next = static_cast<float>(edge[1]);
        head.margin = last == next ? 0 : last - next; // also for equal infinities
    }
    return head;
}

} // namespace

std::vector<TopKHead> TorchEngine::topK(const TopKRequest& request) const {
    if constexpr (KVSCOPE_HAS_KERNELS)
        if (m_device.runsKernels() && request.scores.shape().count() > 0)
            return kernels::topK(m_device, request);
    const at::Tensor scores = numbersOf(request.scores) + 0.0; // -0 becomes +0, which it equals
    const std::int64_t heads = scores.size(0), m = scores.size(1);
    assert(static_cast<std::int64_t>(request.counts.size()) == heads);
    refuseNaN(scores);
    std::vector<TopKHead> result;
    for (std::int64_t h = 0; h < heads; ++h) {
        const std::int64_t count = request.counts[static_cast<std::size_t>(h)];
        assert(0 <= count && count <= m);
        const std::int64_t first = std::min({request.protectFirst, m, count});
        const std::int64_t last = std::min({request.protectLast, m - first, count - first});
        TopKHead best = bestRows(scores.select(0, h).narrow(0, first, m - first - last), count - first - last, first);
        TopKHead head{{}, best.margin};
        for (std::int64_t i = 0; i < first; ++i)
            head.kept.push_back(static_cast<TokenIndex>(i));
        head.kept.insert(head.kept.end(), best.kept.begin(), best.kept.end());
        for (std::int64_t i = m - last; i < m; ++i)
            head.kept.push_back(static_cast<TokenIndex>(i));
        result.push_back(std::move(head));
    }
    return result;
}

} // namespace kvscope::gpu
