// Farthest-first centres: a pick needs every row's distance to one row, so all of it stays on the device.
#include "gpu/torch/kernel_calls.h"
#include "gpu/torch/refusals.h"
#include "gpu/torch/torch_engine.h"
#include "gpu/torch/torch_tensor.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cdist.h>
#include <ATen/ops/full.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/topk.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <cassert>
#include <cmath>
#include <limits>

namespace kvscope::gpu {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr std::int64_t kReportEvery = 64; // picks

/// Euclidean distances of rows [a, d] and [b, d] by differences: [a, b].
at::Tensor distancesOf(const at::Tensor& a, const at::Tensor& b) { return at::cdist(a, b, 2.0, /*differences*/ 2); }

/// The picks of one head. Every row is compared with every centre; nothing is downloaded before the end.
class GreedyRun {
public:
    GreedyRun(const TorchDevice& device, const at::Tensor& keys, TokenIndex first, const GreedyCenters& known)
        : m_keys(keys.to(at::kDouble)) {
        std::vector<TokenIndex> order = known.order;
        if (order.empty()) order.push_back(first);
        m_nearest = at::full({m_keys.size(0)}, kInfinity, m_keys.options());
        m_centre = at::zeros({m_keys.size(0)}, m_keys.options().dtype(at::kLong));
        const at::Tensor picks = device.listOf(order);
        for (std::int64_t i = 0; i < picks.size(0); ++i) take(picks.narrow(0, i, 1));
    }

    std::int64_t picks() const { return static_cast<std::int64_t>(m_picks.size()); }
    void pickNext() { take(m_nearest.argmax(0, /*keepdim=*/true)); } // ties: the lower row

    GreedyCenters result() const {
        GreedyCenters out;
        for (const std::int64_t row : integersOf(at::cat(m_picks))) out.order.push_back(static_cast<TokenIndex>(row));
        out.radius = doublesOf(at::stack(m_radii));
        out.closest = doublesOf(at::stack(m_leads));
        std::size_t count = 0; // picks until every row coincides with a centre
        while (count < out.radius.size() && (count == 0 || out.radius[count - 1] > 0)) {
            if (!std::isfinite(out.radius[count])) refuseKey(m_nearest.argmax().item<std::int64_t>());
            ++count;
        }
        out.order.resize(count);
        out.radius.resize(count);
        out.closest.resize(count);
        out.distances = doublesOf(m_nearest.square());
        for (const std::int64_t centre : integersOf(m_centre)) out.centre.push_back(static_cast<std::int32_t>(centre));
        out.compared.assign(out.centre.size(), static_cast<std::int32_t>(count));
        return out;
    }

private:
    void take(const at::Tensor& pick) {
        const at::Tensor distances = distancesOf(m_keys, m_keys.index_select(0, pick)).squeeze(1);
        m_centre = at::where(distances < m_nearest, picks(), m_centre);
        m_nearest = at::minimum(distances, m_nearest);
        m_picks.push_back(pick);
        if (m_keys.size(0) == 1) {
            m_radii.push_back(m_nearest.select(0, 0));
            m_leads.push_back(m_nearest.select(0, 0));
            return;
        }
        const at::Tensor best = std::get<0>(m_nearest.topk(2));
        m_radii.push_back(best.select(0, 0));
        m_leads.push_back(best.select(0, 0) - best.select(0, 1));
    }

    at::Tensor m_keys, m_nearest, m_centre;
    std::vector<at::Tensor> m_picks, m_radii, m_leads;
};

} // namespace

std::vector<GreedyCenters> TorchEngine::greedyCenters(const Tensor& keys, const CentersRequest& request,
                                                      const Checkpoint& checkpoint) const {
    const std::int64_t heads = keys.size(0);
    assert(static_cast<std::int64_t>(request.first.size()) == heads && 1 <= request.count &&
           request.count <= keys.size(1));
    std::vector<GreedyCenters> known = request.known, runs;
    known.resize(static_cast<std::size_t>(heads));
    Steps steps(m_device, checkpoint, static_cast<double>(heads * request.count));
    if constexpr (KVSCOPE_HAS_KERNELS)
        if (m_device.runsKernels()) return kernels::greedyCenters(m_device, keys, request, checkpoint);
    const at::Tensor rows = numbersOf(keys);
    for (std::int64_t h = 0; h < heads; ++h) {
        const auto head = static_cast<std::size_t>(h);
        GreedyRun run(m_device, rows.select(0, h), request.first[head], known[head]);
        while (run.picks() < request.count) {
            run.pickNext();
            if (run.picks() % kReportEvery == 0) steps.advance(kReportEvery);
        }
        runs.push_back(run.result());
    }
    return runs;
}

} // namespace kvscope::gpu
