// Farthest-first centres and SubGen's one-pass clusters, quadratic and plain.
#include "tests/support/naive/naive_clusters.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace kvscope::naive {

namespace {

double distance(const Block& keys, std::int64_t head, std::int64_t a, std::int64_t b) {
    double sum = 0;
    for (std::int64_t c = 0; c < keys.width; ++c) sum += std::pow(keys.at(head, a, c) - keys.at(head, b, c), 2);
    return std::sqrt(sum);
}

/// Position in `centres` of the one nearest to the row, the first of equals, and its distance.
std::pair<int, double> nearest(const Block& keys, std::int64_t head, std::int64_t row,
                               const std::vector<int>& centres) {
    std::pair<int, double> best{-1, std::numeric_limits<double>::infinity()};
    for (std::size_t i = 0; i < centres.size(); ++i)
        if (const double to = distance(keys, head, row, centres[i]); to < best.second) best = {static_cast<int>(i), to};
    return best;
}

} // namespace

Centers greedyCenters(const Block& keys, std::int64_t head, std::int64_t count, std::int64_t first) {
    Centers run;
    run.order.push_back(static_cast<int>(first));
    for (;;) {
        int farthest = 0;
        double most = -1, second = -1;
        for (int row = 0; row < keys.rows; ++row) {
            const double to = nearest(keys, head, row, run.order).second;
            second = std::max(second, std::min(to, most));
            if (to > most) {
                farthest = row;
                most = to;
            }
        }
        run.radius.push_back(most);
        run.closest.push_back(most - std::max(second, 0.0));
        if (static_cast<std::int64_t>(run.order.size()) == count || most == 0) break;
        run.order.push_back(farthest);
    }
    for (int row = 0; row < keys.rows; ++row) run.cell.push_back(nearest(keys, head, row, run.order).first);
    return run;
}

Clusters streamClusters(const Block& keys, std::int64_t head, double radius) {
    Clusters out;
    for (int row = 0; row < keys.rows; ++row) {
        const auto [at, to] = nearest(keys, head, row, out.representatives);
        if (at >= 0) out.margin = std::min(out.margin, std::abs(to - radius));
        const bool joins = at >= 0 && to <= radius;
        out.cluster.push_back(joins ? at : static_cast<int>(out.representatives.size()));
        out.distances.push_back(joins ? to : 0);
        if (!joins) out.representatives.push_back(row);
    }
    return out;
}

} // namespace kvscope::naive
