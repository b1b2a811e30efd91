// Farthest-first centres and one-pass clusters. A pick needs every row's distance to one row. The one-pass clustering
// computes distances for a block of rows at once and takes its sequential decisions on the host.
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

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

namespace kvscope::gpu {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr std::int64_t kReportEvery = 64; // picks
constexpr std::int64_t kRowsPerBlock = 256;

/// Euclidean distances of rows [a, d] and [b, d] by differences: [a, b].
at::Tensor distancesOf(const at::Tensor& a, const at::Tensor& b) { return at::cdist(a, b, 2.0, /*differences*/ 2); }

/// The picks of one head. Every row is compared with every centre; nothing is downloaded before the end.
class GreedyRun {
public:
    GreedyRun(const TorchDevice& device, const at::Tensor& keys, TokenIndex first, const GreedyCenters& known)
        : m_keys(keys.to(at::kDouble)) {
        std::vector<TokenIndex> order = known.order;
        if (order.empty())
            order.push_back(first);
        m_nearest = at::full({m_keys.size(0)}, kInfinity, m_keys.options());
        m_centre = at::zeros({m_keys.size(0)}, m_keys.options().dtype(at::kLong));
        const at::Tensor picks = device.listOf(order);
        for (std::int64_t i = 0; i < picks.size(0); ++i)
            take(picks.narrow(0, i, 1));
    }

    std::int64_t picks() const { return static_cast<std::int64_t>(m_picks.size()); }
    void pickNext() { take(m_nearest.argmax(0, /*keepdim=*/true)); } // ties: the lower row

    GreedyCenters result() const {
        GreedyCenters out;
        for (const std::int64_t row : integersOf(at::cat(m_picks)))
            out.order.push_back(static_cast<TokenIndex>(row));
        out.radius = doublesOf(at::stack(m_radii));
        out.closest = doublesOf(at::stack(m_leads));
        std::size_t count = 0; // picks until every row coincides with a centre
        while (count < out.radius.size() && (count == 0 || out.radius[count - 1] > 0)) {
            if (!std::isfinite(out.radius[count]))
                refuseKey(m_nearest.argmax().item<std::int64_t>());
            ++count;
        }
        out.order.resize(count);
        out.radius.resize(count);
        out.closest.resize(count);
        out.distances = doublesOf(m_nearest.square());
        for (const std::int64_t centre : integersOf(m_centre))
            out.centre.push_back(static_cast<std::int32_t>(centre));
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

/// Clusters the rows of one head in order, a block at a time.
class ClusterPass {
public:
    ClusterPass(const TorchDevice& device, const at::Tensor& keys, double radius, std::int64_t most,
                StreamClusters& out)
        : m_device(device), m_keys(keys.to(at::kDouble)), m_radius(radius), m_most(most), m_out(out) {}

    void takeBlock(std::int64_t begin, std::int64_t count) {
        const at::Tensor block = m_keys.narrow(0, begin, count);
        std::vector<double> nearest(static_cast<std::size_t>(count), kInfinity);
        std::vector<std::int64_t> which(static_cast<std::size_t>(count), -1);
        if (!m_out.representatives.empty()) {
            const at::Tensor old = m_keys.index_select(0, m_device.listOf(m_out.representatives));
            const auto [values, places] = distancesOf(block, old).min(1);
            nearest = doublesOf(values);
            which = integersOf(places);
        }
        const std::vector<double> among = doublesOf(distancesOf(block, block));
        std::vector<std::int64_t> opened; // rows of the block that opened a cluster
        for (std::int64_t r = 0; r < count && !m_out.full; ++r) {
            double distance = nearest[static_cast<std::size_t>(r)];
            std::int64_t cluster = which[static_cast<std::size_t>(r)];
            for (std::size_t i = 0; i < opened.size(); ++i) { // ties stay with the older cluster
                const double to = among[static_cast<std::size_t>(r * count + opened[i])];
                if (to < distance || std::isnan(to)) {
                    distance = to;
                    cluster = static_cast<std::int64_t>(m_out.representatives.size() - opened.size() + i);
                }
            }
            if (decide(begin + r, distance, cluster))
                opened.push_back(r);
        }
    }

private:
    /// True when the row opened a cluster.
    bool decide(std::int64_t row, double distance, std::int64_t cluster) {
        const auto known = static_cast<std::int64_t>(m_out.representatives.size());
        if (known > 0) {
            if (!std::isfinite(distance))
                refuseKey(row);
            m_out.margin = std::min(m_out.margin, std::abs(distance - m_radius));
        }
        const bool joins = known > 0 && distance <= m_radius;
        m_out.full = !joins && known == m_most;
        if (m_out.full)
            return false;
        m_out.cluster.push_back(static_cast<std::int32_t>(joins ? cluster : known));
        m_out.distances.push_back(joins ? distance : 0);
        if (!joins)
            m_out.representatives.push_back(static_cast<TokenIndex>(row));
        return !joins;
    }

    const TorchDevice& m_device;
    at::Tensor m_keys;
    double m_radius;
    std::int64_t m_most;
    StreamClusters& m_out;
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
        if (m_device.runsKernels())
            return kernels::greedyCenters(m_device, keys, request, checkpoint);
    const at::Tensor rows = numbersOf(keys);
    for (std::int64_t h = 0; h < heads; ++h) {
        const auto head = static_cast<std::size_t>(h);
        GreedyRun run(m_device, rows.select(0, h), request.first[head], known[head]);
        while (run.picks() < request.count) {
            run.pickNext();
            if (run.picks() % kReportEvery == 0)
                steps.advance(kReportEvery);
        }
        runs.push_back(run.result());
    }
    return runs;
}

std::vector<StreamClusters> TorchEngine::streamClusters(const Tensor& keys, std::span<const double> radii,
                                                        std::int64_t most, const Checkpoint& checkpoint) const {
    const at::Tensor rows = numbersOf(keys);
    const std::int64_t heads = rows.size(0), n = rows.size(1);
    assert(static_cast<std::int64_t>(radii.size()) == heads && most >= 1);
    std::vector<StreamClusters> result(static_cast<std::size_t>(heads));
    Steps steps(m_device, checkpoint, static_cast<double>(heads * n));
    for (std::int64_t h = 0; h < heads; ++h) {
        StreamClusters& out = result[static_cast<std::size_t>(h)];
        ClusterPass pass(m_device, rows.select(0, h), radii[static_cast<std::size_t>(h)], most, out);
        for (std::int64_t begin = 0; begin < n && !out.full; begin += kRowsPerBlock) {
            const std::int64_t count = std::min(kRowsPerBlock, n - begin);
            pass.takeBlock(begin, count);
            steps.advance(static_cast<double>(count));
        }
    }
    return result;
}

} // namespace kvscope::gpu
