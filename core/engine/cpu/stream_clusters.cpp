// SubGen's clustering (Algorithm 1), one pass in time order: a key joins the nearest representative or becomes one.
// Representatives never move, so they are stored contiguously and one sweep gives all distances of a key.
#include "core/engine/cpu/cpu_engine.h"
#include "core/engine/cpu/row_blocks.h"

#include "core/base/error.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <string>

namespace kvscope::cpu {

namespace {

constexpr std::int64_t kReportEvery = 256; // rows

class ClusterPass {
public:
    ClusterPass(const Kernels& kernels, std::int64_t d, double radius, std::int64_t most, StreamClusters& out)
        : m_kernels(kernels), m_depth(d), m_radius(radius), m_most(most), m_out(out) {}

    /// False when the row would open one cluster more than allowed.
    bool take(const float* key, TokenIndex row) {
        const auto known = static_cast<std::int64_t>(m_out.representatives.size());
        m_distances.resize(static_cast<std::size_t>(known));
        m_kernels.rowDistances(m_representatives.data(), known, m_depth, key, m_distances.data());
        const auto nearest = std::ranges::min_element(m_distances); // ties: the first
        const double distance = known > 0 ? std::sqrt(*nearest) : 0;
        if (!std::isfinite(distance))
            throw Error({"key " + std::to_string(row) + " has no finite distance to another key", "keys",
                         "Look for NaN or infinity in the capture's keys"});
        if (known > 0) m_out.margin = std::min(m_out.margin, std::abs(distance - m_radius));
        if (known > 0 && distance <= m_radius) {
            m_out.cluster.push_back(static_cast<std::int32_t>(nearest - m_distances.begin()));
            m_out.distances.push_back(distance);
            return true;
        }
        if (known == m_most) return false;
        m_out.representatives.push_back(row);
        m_representatives.insert(m_representatives.end(), key, key + m_depth);
        m_out.cluster.push_back(static_cast<std::int32_t>(known));
        m_out.distances.push_back(0);
        return true;
    }

private:
    const Kernels& m_kernels;
    std::int64_t m_depth;
    double m_radius;
    std::int64_t m_most;
    StreamClusters& m_out;
    std::vector<float> m_representatives;
    std::vector<double> m_distances;
};

} // namespace

std::vector<StreamClusters> CpuEngine::streamClusters(const Tensor& keys, std::span<const double> radii,
                                                      std::int64_t most, const Checkpoint& checkpoint) const {
    const std::int64_t heads = keys.size(0), n = keys.size(1), d = keys.size(2);
    assert(static_cast<std::int64_t>(radii.size()) == heads && most >= 1);
    std::vector<StreamClusters> result(static_cast<std::size_t>(heads));
    Progress progress(checkpoint, static_cast<double>(heads * n));
    m_workers.each(heads, [&](std::int64_t h) {
        StreamClusters& out = result[h];
        ClusterPass pass(m_kernels, d, radii[h], most, out);
        for (std::int64_t begin = 0; begin < n && !out.full; begin += kRowsPerBlock) {
            const std::int64_t end = std::min(n, begin + kRowsPerBlock);
            const HeadRows rows(keys, h, begin, end);
            for (std::int64_t row = begin; row < end && !out.full; ++row) {
                out.full = !pass.take(rows.data() + (row - begin) * d, static_cast<TokenIndex>(row));
                if ((row + 1) % kReportEvery == 0) progress.advance(kReportEvery);
            }
        }
    });
    return result;
}

} // namespace kvscope::cpu
