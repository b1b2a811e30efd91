// The embedding half of t-SNE: attraction between neighbours, and repulsion between all pairs, either each in float
// (kernel `repulsion`) or on a grid.
#include "core/engine/tsne.h"

#include "core/base/portable_log.h"
#include "core/base/random.h"
#include "core/engine/cpu/kernels.h"
#include "core/engine/cpu/repulsion_grid.h"
#include "core/engine/cpu/workers.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <numeric>
#include <optional>
#include <queue>

namespace kvscope {

namespace {

using namespace cpu;

constexpr std::int64_t kRowsPerPiece = 64;
constexpr double kExaggeration = 12;
constexpr int kLongestExaggeration = 250; // iterations

/// Sums over all pairs of points.
class Pairs {
public:
    Pairs(const TsneAffinities& affinities, const TsneWorkers& workers, TsneRepulsion repulsion)
        : m_affinities(affinities), m_narrow(affinities.affinity.begin(), affinities.affinity.end()),
          m_kernels(kernelsFor(workers.instructionSet)), m_workers(workers.threads), m_rows(affinities.rows()) {
        if (repulsion == TsneRepulsion::Grid) m_grid.emplace(m_kernels, m_workers);
        const std::int64_t padded = (m_rows + kRepulsionStep - 1) / kRepulsionStep * kRepulsionStep;
        m_x.assign(static_cast<std::size_t>(padded), kFarAway);
        m_y = m_x;
        m_force.resize(static_cast<std::size_t>(2 * m_rows));
        m_pull = m_force;
        m_weights.resize(static_cast<std::size_t>(m_rows));
        m_logs = m_weights;
        for (const double affinity : affinities.affinity) m_entropy += affinity * portableLog(affinity);
    }

    /// Computes the gradient at the points, and the divergence if asked for.
    void sumUp(const std::vector<double>& points, double exaggeration, bool divergence, TsneGradient& slope) {
        m_points.assign(points.begin(), points.end());
        if (m_grid) m_grid->place(points);
        for (std::size_t i = 0; !m_grid && i < static_cast<std::size_t>(m_rows); ++i) {
            m_x[i] = static_cast<float>(points[2 * i]);
            m_y[i] = static_cast<float>(points[2 * i + 1]);
        }
        m_workers.each((m_rows + kRowsPerPiece - 1) / kRowsPerPiece, [&](std::int64_t piece) {
            const std::int64_t end = std::min(m_rows, (piece + 1) * kRowsPerPiece);
            for (std::int64_t i = piece * kRowsPerPiece; i < end; ++i) sumRow(points, i, divergence);
        });
        double total = -static_cast<double>(m_rows); // without the pairs (i, i), which have weight 1
        for (const double weight : m_weights) total += weight;
        slope.gradient.resize(m_force.size());
        for (std::size_t c = 0; c < m_force.size(); ++c)
            slope.gradient[c] = 4 * (exaggeration * m_pull[c] - m_force[c] / total);
        if (!divergence) return;
        slope.divergence = m_entropy + portableLog(total); // sum p (ln p - ln w + ln sum w), sum p = 1
        for (const double row : m_logs) slope.divergence -= row;
    }

private:
    static constexpr float kFarAway = 3e19F; // its square is infinite, so its weight is exactly 0

    void sumRow(const std::vector<double>& points, std::int64_t row, bool divergence) {
        const auto i = static_cast<std::size_t>(row);
        double sums[3] = {};
        if (m_grid)
            m_grid->read(points[2 * i], points[2 * i + 1], sums);
        else
            m_kernels.repulsion(m_x.data(), m_y.data(), static_cast<std::int64_t>(m_x.size()), row, sums);
        m_weights[i] = sums[0];
        m_force[2 * i] = sums[1];
        m_force[2 * i + 1] = sums[2];
        const std::int64_t first = m_affinities.begin[i], last = m_affinities.begin[i + 1];
        m_pull[2 * i] = m_pull[2 * i + 1] = m_logs[i] = 0;
        m_kernels.attraction(m_points.data(), m_affinities.column.data() + first, m_narrow.data() + first, last - first,
                             row, m_pull.data() + 2 * i);
        for (std::int64_t at = first; divergence && at < last; ++at) {
            const std::int64_t j = m_affinities.column[at];
            const double dx = points[2 * i] - points[2 * j], dy = points[2 * i + 1] - points[2 * j + 1];
            m_logs[i] -= m_affinities.affinity[at] * portableLog(1 + dx * dx + dy * dy); // ln w
        }
    }

    const TsneAffinities& m_affinities;
    std::vector<float> m_narrow; ///< affinities as floats for the attraction, which is bound by memory
    const Kernels& m_kernels;
    Workers m_workers;
    std::optional<RepulsionGrid> m_grid;
    std::int64_t m_rows;
    std::vector<float> m_points, m_x, m_y; ///< [n, 2] and, padded, its columns
    std::vector<double> m_force, m_pull;   ///< [n, 2]
    std::vector<double> m_weights, m_logs; ///< [n]
    double m_entropy = 0;                  ///< sum p ln p
};

/// Step sizes per coordinate: they grow while the gradient keeps its sign and shrink when that changes (Jacobs, 1988).
class Descent {
public:
    Descent(std::size_t coordinates, double rate) : m_rate(rate), m_step(coordinates), m_gain(coordinates, 1.0) {}

    void move(std::vector<double>& points, const std::vector<double>& gradient, double momentum) {
        for (std::size_t c = 0; c < points.size(); ++c) {
            const bool onwards = (gradient[c] > 0) != (m_step[c] > 0);
            m_gain[c] = std::max(0.01, onwards ? m_gain[c] + 0.2 : m_gain[c] * 0.8);
            m_step[c] = momentum * m_step[c] - m_rate * m_gain[c] * gradient[c];
            points[c] += m_step[c];
        }
    }

private:
    double m_rate;
    std::vector<double> m_step, m_gain;
};

std::vector<double> randomStart(std::int64_t n, std::uint64_t seed) {
    std::vector<double> points;
    for (std::int64_t i = 0; i < n; ++i) {
        const auto [x, y] = gaussianPairAt({.seed = seed, .token = static_cast<std::uint32_t>(i)});
        points.push_back(1e-4 * x);
        points.push_back(1e-4 * y);
    }
    return points;
}

void centre(std::vector<double>& points) {
    double mean[2] = {};
    for (std::size_t c = 0; c < points.size(); ++c) mean[c % 2] += points[c] / (static_cast<double>(points.size()) / 2);
    for (std::size_t c = 0; c < points.size(); ++c) points[c] -= mean[c % 2];
}

Embedding embeddingOf(const std::vector<double>& points, int iteration, double divergence) {
    const auto n = static_cast<std::int64_t>(points.size() / 2);
    return {{{n, 2}, {points.begin(), points.end()}},
            iteration,
            divergence,
            std::numeric_limits<double>::quiet_NaN(),
            repulsionFor(n)};
}

/// Finds near points of an embedding: points nearest along x are looked at first.
class NearPoints {
public:
    explicit NearPoints(const HostTensor& points) : m_points(points), m_byX(static_cast<std::size_t>(points.shape[0])) {
        std::iota(m_byX.begin(), m_byX.end(), std::size_t{0});
        std::ranges::sort(m_byX, {}, [this](std::size_t i) { return std::pair(x(i), i); });
        m_place.resize(m_byX.size());
        for (std::size_t place = 0; place < m_byX.size(); ++place) m_place[m_byX[place]] = place;
    }

    /// Squared distance of two points, with the second point's number, so that no two are equal.
    using Distance = std::pair<double, std::size_t>;
    Distance distance(std::size_t i, std::size_t j) const {
        const double dx = x(i) - x(j), dy = double{m_points.data[2 * i + 1]} - double{m_points.data[2 * j + 1]};
        return {dx * dx + dy * dy, j};
    }

    /// Distance of the `count`-th nearest point from point i. No distance is shorter than its part along x.
    Distance last(std::size_t i, std::size_t count) const {
        std::priority_queue<Distance> near;
        std::size_t left = m_place[i], right = left + 1; // [left, right) has been looked at
        while (left > 0 || right < m_byX.size()) {
            const double before = left > 0 ? x(i) - x(m_byX[left - 1]) : std::numeric_limits<double>::infinity();
            const double after =
                right < m_byX.size() ? x(m_byX[right]) - x(i) : std::numeric_limits<double>::infinity();
            const double nearer = std::min(before, after);
            if (near.size() == count && nearer * nearer > near.top().first) break;
            near.push(distance(i, before <= after ? m_byX[--left] : m_byX[right++]));
            if (near.size() > count) near.pop();
        }
        return near.top();
    }

private:
    double x(std::size_t i) const { return double{m_points.data[2 * i]}; }

    const HostTensor& m_points;
    std::vector<std::size_t> m_byX, m_place;
};

double neighboursKept(const TsneAffinities& affinities, const HostTensor& points, const TsneWorkers& workers,
                      const Checkpoint& checkpoint) {
    const std::int64_t n = affinities.rows();
    const std::size_t evaluated = affinities.nearest.size() / static_cast<std::size_t>(n);
    std::vector<int> kept(static_cast<std::size_t>(n));
    const NearPoints near(points);
    const Workers threads(workers.threads);
    threads.each((n + kRowsPerPiece - 1) / kRowsPerPiece, [&](std::int64_t piece) {
        checkpoint.stopPoint();
        for (std::int64_t i = piece * kRowsPerPiece; i < std::min(n, (piece + 1) * kRowsPerPiece); ++i) {
            const auto row = static_cast<std::size_t>(i);
            const NearPoints::Distance last = near.last(row, evaluated);
            for (std::size_t k = row * evaluated; k < (row + 1) * evaluated; ++k)
                kept[row] += near.distance(row, static_cast<std::size_t>(affinities.nearest[k])) <= last;
        }
    });
    return static_cast<double>(std::accumulate(kept.begin(), kept.end(), std::int64_t{0})) /
           static_cast<double>(n * static_cast<std::int64_t>(evaluated));
}

} // namespace

TsneGradient tsneGradient(const TsneAffinities& affinities, const std::vector<double>& points, double exaggeration,
                          const TsneWorkers& workers, TsneRepulsion repulsion) {
    assert(points.size() == static_cast<std::size_t>(2 * affinities.rows()));
    TsneGradient slope;
    Pairs(affinities, workers, repulsion).sumUp(points, exaggeration, true, slope);
    return slope;
}

Embedding tsne(const TsneAffinities& affinities, const TsneRequest& request, const TsneWorkers& workers,
               const Checkpoint& checkpoint, const std::function<void(Embedding)>& snapshot) {
    const std::int64_t n = affinities.rows();
    const int exaggerated = std::min(kLongestExaggeration, request.iterations / 3);
    std::vector<double> points = randomStart(n, request.seed);
    Pairs pairs(affinities, workers, repulsionFor(n));
    // The original code: n / 12 and a gradient without the factor 4 (Belkina et al., Nature Communications 10, 2019).
    Descent descent(points.size(), std::max(50.0, static_cast<double>(n) / kExaggeration / 4));
    TsneGradient slope;
    for (int iteration = 0; iteration < request.iterations; ++iteration) {
        checkpoint.at(iteration, request.iterations);
        const bool early = iteration < exaggerated, seen = snapshot && request.snapshotEvery > 0 && iteration > 0 &&
                                                           iteration % request.snapshotEvery == 0;
        pairs.sumUp(points, early ? kExaggeration : 1, seen, slope);
        if (seen) snapshot(embeddingOf(points, iteration, slope.divergence));
        descent.move(points, slope.gradient, early ? 0.5 : 0.8);
        centre(points);
    }
    pairs.sumUp(points, 1, true, slope);
    Embedding result = embeddingOf(points, request.iterations, slope.divergence);
    result.neighboursKept = neighboursKept(affinities, result.points, workers, checkpoint);
    return result;
}

} // namespace kvscope
