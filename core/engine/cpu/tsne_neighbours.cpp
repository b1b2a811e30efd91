// The input half of t-SNE: affinities p_ij. Every row gives its nearest rows Gaussian affinities of the requested
// perplexity; the two affinities of a pair are averaged.
#include "core/engine/tsne.h"

#include "core/base/error.h"
#include "core/base/portable_log.h"
#include "core/engine/cpu/nearest_rows.h"
#include "core/engine/cpu/workers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>

namespace kvscope {

namespace {

using namespace cpu;

void check(const HostTensor& rows, double perplexity) {
    const std::int64_t n = rows.shape[0], d = rows.shape[1];
    if (n > kMostTsneRows)
        throw Error({fmt::format("t-SNE takes up to {} points, and these are {}", kMostTsneRows, n), "method",
                     "Show the principal axes (method=pca), or a capture of fewer tokens"});
    if (static_cast<double>(n) <= 3 * perplexity)
        throw Error({fmt::format("perplexity {:g} looks at {:g} neighbours, and there are {} points", perplexity,
                                 3 * perplexity, n),
                     "perplexity",
                     n > 15 ? fmt::format("Lower it below {}", (n + 2) / 3) : "Show the principal axes (method=pca)"});
    for (std::size_t i = 0; i < rows.data.size(); ++i)
        if (!std::isfinite(rows.data[i]))
            throw Error({fmt::format("row {} is not finite", static_cast<std::int64_t>(i) / d), "t-SNE",
                         "Look for NaN or infinity in the capture"});
}

/// Affinities exp(-beta (d_j - d_0)) of one row's neighbours, d the squared distance.
class RowAffinities {
public:
    RowAffinities(const Kernels& kernels, const std::vector<Neighbour>& near)
        : m_kernels(kernels), m_count(near.size()),
          m_exponentials((near.size() + kMaxLanes - 1) / kMaxLanes * kMaxLanes) {
        for (const Neighbour& one : near) m_distances.push_back(one.distance - near.front().distance);
    }

    /// Affinities of the entropy ln perplexity, which falls as beta grows: beta is doubled or halved until it is
    /// enclosed, then bisected. Rows at equal distances have equal affinities for every beta.
    std::vector<double> ofPerplexity(double perplexity) {
        constexpr double kTolerance = 1e-9;
        const double wanted = portableLog(perplexity), spread = m_distances.back();
        double beta = spread > 0 ? 1 / spread : 1, low = 0, high = INFINITY;
        for (int step = 0; step < 200; ++step) {
            const double entropy = entropyAt(beta);
            if (std::abs(entropy - wanted) < kTolerance || !(spread > 0)) break;
            (entropy > wanted ? low : high) = beta;
            beta = high == INFINITY ? beta * 2 : 0.5 * (low + high);
        }
        std::vector<double> affinities(m_exponentials.begin(),
                                       m_exponentials.begin() + static_cast<std::ptrdiff_t>(m_count));
        for (double& affinity : affinities) affinity /= m_total;
        return affinities;
    }

private:
    /// Entropy of the affinities at beta, in nats.
    double entropyAt(double beta) {
        for (std::size_t j = 0; j < m_count; ++j) m_exponentials[j] = -beta * m_distances[j];
        constexpr std::array<double, kMaxLanes> kNoShift{};
        std::array<double, kMaxLanes> unused{};
        m_kernels.exponentials(m_exponentials.data(), std::ssize(m_exponentials) / kMaxLanes, kMaxLanes,
                               kNoShift.data(), nullptr, unused.data());
        m_total = 0;
        double mean = 0;
        for (std::size_t j = 0; j < m_count; ++j) {
            m_total += m_exponentials[j];
            mean += m_exponentials[j] * m_distances[j];
        }
        return portableLog(m_total) + beta * mean / m_total;
    }

    const Kernels& m_kernels;
    std::size_t m_count;
    std::vector<double> m_exponentials, m_distances; ///< m_exponentials is padded
    double m_total = 0;
};

/// (p_j|i + p_i|j) / 2n. A pair has one or two terms, so the order of addition does not matter.
void symmetrise(std::vector<std::vector<Neighbour>>& rows, TsneAffinities& out) {
    const std::size_t n = rows.size();
    std::vector<std::vector<Neighbour>> both(n); // distance holds the affinity here
    for (std::size_t i = 0; i < n; ++i)
        for (const Neighbour& other : rows[i]) {
            const double half = other.distance / (2 * static_cast<double>(n));
            both[i].push_back({half, other.row});
            both[other.row].push_back({half, static_cast<std::int32_t>(i)});
        }
    out.begin.assign(1, 0);
    for (std::vector<Neighbour>& row : both) {
        std::ranges::sort(row, {}, &Neighbour::row);
        const auto first = static_cast<std::size_t>(out.begin.back());
        for (const Neighbour& entry : row)
            if (entry.distance > 0) {
                const bool again = out.column.size() > first && out.column.back() == entry.row;
                if (!again) {
                    out.column.push_back(entry.row);
                    out.affinity.push_back(0);
                }
                out.affinity.back() += entry.distance;
            }
        out.begin.push_back(static_cast<std::int64_t>(out.column.size()));
    }
}

} // namespace

TsneAffinities tsneAffinities(const HostTensor& rows, double perplexity, const TsneWorkers& workers,
                              const Checkpoint& checkpoint) {
    assert(rows.shape.rank() == 2 && perplexity >= 1);
    check(rows, perplexity);
    const std::int64_t n = rows.shape[0];
    const auto count = static_cast<std::size_t>(std::min<std::int64_t>(
        n - 1, std::max<std::int64_t>(kEvaluatedNeighbours, static_cast<std::int64_t>(3 * perplexity))));
    const std::size_t evaluated = std::min<std::size_t>(count, kEvaluatedNeighbours);
    const Kernels& kernels = kernelsFor(workers.instructionSet);
    const NearestRows search(kernels, rows);
    TsneAffinities out;
    out.nearest.resize(static_cast<std::size_t>(n) * evaluated);
    std::vector<std::vector<Neighbour>> near(static_cast<std::size_t>(n));
    Progress progress(checkpoint, static_cast<double>(n));
    const Workers threads(workers.threads);
    threads.each((n + kMaxLanes - 1) / kMaxLanes, [&](std::int64_t piece) {
        const std::int64_t begin = piece * kMaxLanes, end = std::min(n, begin + kMaxLanes);
        auto found = search.of(begin, end, count);
        for (std::int64_t i = begin; i < end; ++i) {
            std::vector<Neighbour>& mine = near[i];
            mine = std::move(found[i - begin]);
            for (std::size_t j = 0; j < evaluated; ++j)
                out.nearest[static_cast<std::size_t>(i) * evaluated + j] = mine[j].row;
            const std::vector<double> affinities = RowAffinities(kernels, mine).ofPerplexity(perplexity);
            for (std::size_t j = 0; j < count; ++j) mine[j].distance = affinities[j];
        }
        progress.advance(static_cast<double>(end - begin));
    });
    symmetrise(near, out);
    return out;
}

} // namespace kvscope
