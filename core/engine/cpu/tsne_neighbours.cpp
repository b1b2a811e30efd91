// The input half of t-SNE: affinities p_ij. Every row gives its nearest rows Gaussian affinities of the requested
// perplexity; those of a pair are averaged.
#include "core/engine/tsne.h"

#include "core/base/error.h"
#include "core/base/portable_log.h"
#include "core/base/portable_math.h"
#include "core/engine/cpu/lane_block.h"
#include "core/engine/cpu/workers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>

namespace kvscope {

namespace {

using namespace cpu;

struct Neighbour {
    double distance; ///< squared
    std::int32_t row;
    bool operator<(const Neighbour& other) const {
        return distance != other.distance ? distance < other.distance : row < other.row;
    }
};

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

/// The `count` nearest of all rows to each row of a block of lanes, by (distance, index).
std::vector<std::vector<Neighbour>> nearestOfBlock(const Kernels& kernels, const HostTensor& rows, std::int64_t begin,
                                                   std::int64_t end, std::size_t count) {
    const std::int64_t n = rows.shape[0], d = rows.shape[1];
    std::vector<const float*> lanes;
    for (std::int64_t i = begin; i < end; ++i) lanes.push_back(rows.data.data() + i * d);
    const LaneBlock block(lanes, d);
    std::vector<double> squares(static_cast<std::size_t>(n * block.lanes()));
    Panel panel(kernels, d);
    for (std::int64_t first = 0; first < n; first += kPanelRows) {
        const std::int64_t width = std::min(kPanelRows, n - first);
        kernels.squaredDifferences(block.against(panel.fill(rows.data.data(), first, width, nullptr), width,
                                                 squares.data() + first * block.lanes()));
    }
    std::vector<std::vector<Neighbour>> found;
    for (std::int64_t i = begin; i < end; ++i) {
        std::vector<Neighbour> others;
        others.reserve(static_cast<std::size_t>(n));
        for (std::int64_t j = 0; j < n; ++j)
            if (j != i) others.push_back({squares[j * block.lanes() + i - begin], static_cast<std::int32_t>(j)});
        std::nth_element(others.begin(), others.begin() + static_cast<std::ptrdiff_t>(count) - 1, others.end());
        others.resize(count);
        std::sort(others.begin(), others.end());
        found.push_back(std::move(others));
    }
    return found;
}

/// exp(-beta (d_j - d_0)), normalised, and its entropy in nats.
double affinitiesAt(const std::vector<Neighbour>& near, double beta, std::vector<double>& affinities) {
    double total = 0, mean = 0;
    for (std::size_t j = 0; j < near.size(); ++j) {
        const double distance = near[j].distance - near.front().distance;
        affinities[j] = portableExp(-beta * distance);
        total += affinities[j];
        mean += affinities[j] * distance;
    }
    for (double& affinity : affinities) affinity /= total;
    return portableLog(total) + beta * mean / total;
}

/// Affinities of the wanted entropy, which falls as beta grows: beta is doubled or halved until it is enclosed, then
/// bisected. Rows at equal distances have equal affinities for every beta.
std::vector<double> affinitiesOfPerplexity(const std::vector<Neighbour>& near, double perplexity) {
    constexpr double kTolerance = 1e-9;
    const double wanted = portableLog(perplexity), spread = near.back().distance - near.front().distance;
    std::vector<double> affinities(near.size());
    double beta = spread > 0 ? 1 / spread : 1, low = 0, high = INFINITY;
    for (int step = 0; step < 200; ++step) {
        const double entropy = affinitiesAt(near, beta, affinities);
        if (std::abs(entropy - wanted) < kTolerance || !(spread > 0)) break;
        (entropy > wanted ? low : high) = beta;
        beta = high == INFINITY ? beta * 2 : 0.5 * (low + high);
    }
    return affinities;
}

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
    TsneAffinities out;
    out.nearest.resize(static_cast<std::size_t>(n) * evaluated);
    std::vector<std::vector<Neighbour>> near(static_cast<std::size_t>(n));
    Progress progress(checkpoint, static_cast<double>(n));
    const Workers threads(workers.threads);
    threads.each((n + kMaxLanes - 1) / kMaxLanes, [&](std::int64_t piece) {
        const std::int64_t begin = piece * kMaxLanes, end = std::min(n, begin + kMaxLanes);
        auto found = nearestOfBlock(kernels, rows, begin, end, count);
        for (std::int64_t i = begin; i < end; ++i) {
            std::vector<Neighbour>& mine = near[i];
            mine = std::move(found[i - begin]);
            for (std::size_t j = 0; j < evaluated; ++j)
                out.nearest[static_cast<std::size_t>(i) * evaluated + j] = mine[j].row;
            const std::vector<double> affinities = affinitiesOfPerplexity(mine, perplexity);
            for (std::size_t j = 0; j < count; ++j) mine[j].distance = affinities[j];
        }
        progress.advance(static_cast<double>(end - begin));
    });
    symmetrise(near, out);
    return out;
}

} // namespace kvscope
