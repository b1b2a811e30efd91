// Greedy k-center with few distances. A row's distance to its nearest centre only falls, so an outdated value is an
// upper bound: only rows with the largest bound are compared with the centres they have missed, first in float, whose
// error is bounded. A missed centre that lies twice as far from a row's nearest centre as the row does is no nearer
// (triangle inequality), and is left out. The picks equal those of the plain algorithm.
#include "core/engine/cpu/cpu_engine.h"

#include "core/base/error.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <queue>
#include <string>

namespace kvscope::cpu {

namespace {

constexpr std::int64_t kReportEvery = 64;    // picks
constexpr std::size_t kMostPaired = 1 << 13; // centres with stored distances: 134 MB a head

/// Orders the farthest row first; ties: the lower row.
struct Bound {
    double distance;
    TokenIndex row;
    bool operator<(const Bound& other) const {
        return distance != other.distance ? distance < other.distance : row > other.row;
    }
};

class GreedyRun {
public:
    GreedyRun(const Kernels& kernels, const float* keys, std::int64_t n, std::int64_t d, GreedyCenters& state)
        : m_kernels(kernels), m_keys(keys), m_rows(n), m_depth(d), m_state(state) {}

    void begin(TokenIndex first) {
        const auto n = static_cast<std::size_t>(m_rows);
        if (m_state.order.empty()) {
            m_state.distances.assign(n, std::numeric_limits<double>::infinity());
            m_state.centre.assign(n, 0);
            m_state.compared.assign(n, 0);
            m_state.order.push_back(first);
        }
        for (const TokenIndex centre : m_state.order) rememberCentre(centre);
        std::vector<Bound> bounds;
        for (TokenIndex row = 0; row < m_rows; ++row) bounds.push_back({m_state.distances[row], row});
        m_bounds = std::priority_queue<Bound>(std::less<Bound>(), std::move(bounds));
    }

    /// False when every row coincides with a centre.
    bool pickNext() {
        if (m_state.radius.size() < m_state.order.size()) measure();
        if (m_state.radius.back() == 0) return false;
        const TokenIndex row = m_bounds.top().row;
        m_state.order.push_back(row);
        rememberCentre(row);
        return true;
    }

    /// Radius after the last pick, and the lead of the next pick.
    void measure() {
        if (m_state.radius.size() == m_state.order.size()) return;
        const Bound farthest = freshTop();
        if (!std::isfinite(farthest.distance))
            throw Error({"key " + std::to_string(farthest.row) + " has no finite distance to another key", "keys",
                         "Look for NaN or infinity in the capture's keys"});
        m_bounds.pop();
        const double second = m_bounds.empty() ? 0 : std::sqrt(freshTop().distance);
        m_bounds.push(farthest);
        m_state.radius.push_back(std::sqrt(farthest.distance));
        m_state.closest.push_back(m_state.radius.back() - second);
    }

    void compareAll() {
        for (TokenIndex row = 0; row < m_rows; ++row) compare(row);
    }

private:
    void rememberCentre(TokenIndex row) {
        const float* key = m_keys + std::int64_t{row} * m_depth;
        m_centres.insert(m_centres.end(), key, key + m_depth);
        const std::size_t before = m_between.size();
        if (before == kMostPaired) return;
        std::vector<float> between(before);
        m_kernels.floatDistances(m_centres.data(), std::ssize(m_between), m_depth, key, between.data());
        for (std::size_t centre = 0; centre < before; ++centre) m_between[centre].push_back(between[centre]);
        m_between.emplace_back();
    }

    /// The next centre from `from` on that may be nearer to the row than centre `own` (`nearer`), or that cannot be.
    /// Centres whose distance to `own` is not stored may be nearer.
    std::int32_t next(std::int32_t own, std::int32_t from, std::int32_t end, double fourTimes, bool nearer) const {
        const auto paired = static_cast<std::int32_t>(m_between.size());
        if (own < paired) {
            const std::vector<float>& later = m_between[own]; // the first one's is that of centre own + 1
            for (const std::int32_t stored = std::min(end, paired); from < stored; ++from)
                if (isFarther(later[from - own - 1], fourTimes) != nearer) return from;
        }
        return nearer ? from : end;
    }

    /// Whether the squared distance in double, of which `squared` is the float, is certainly at least `nearest`. False
    /// where floats leave their range.
    bool isFarther(float squared, double nearest) const {
        constexpr float kLeast = 1e-30F, kMost = 1e38F;
        const double error = (static_cast<double>(m_depth) / 4 + 28) * 0x1.0p-24;
        return squared > kLeast && squared < kMost && double{squared} * (1 - error) >= nearest;
    }

    /// Compares the row with the centres that it has missed.
    void compare(TokenIndex row) {
        const auto all = static_cast<std::int32_t>(m_state.order.size());
        const std::int32_t from = m_state.compared[row], missed = all - from;
        if (missed == 0) return;
        m_missed.resize(static_cast<std::size_t>(missed));
        const std::int32_t own = m_state.centre[row];
        const double fourTimes = 4 * (1 + 1e-9) * m_state.distances[row]; // more than the rounding of sums in double
        if (from == 0) compareWith(row, from, all);
        for (std::int32_t begin = from; from > 0 && begin < all;) {
            begin = next(own, begin, all, fourTimes, true);
            const std::int32_t end = next(own, begin, all, fourTimes, false);
            compareWith(row, begin, end);
            begin = end;
        }
        m_state.compared[row] = all;
    }

    /// Compares the row with centres [begin, end).
    void compareWith(TokenIndex row, std::int32_t begin, std::int32_t end) {
        const float* key = m_keys + row * m_depth;
        m_kernels.floatDistances(m_centres.data() + begin * m_depth, end - begin, m_depth, key, m_missed.data());
        double& nearest = m_state.distances[row];
        for (std::int32_t centre = begin; centre < end; ++centre) {
            if (isFarther(m_missed[centre - begin], nearest)) continue;
            double distance = 0;
            m_kernels.rowDistances(m_centres.data() + centre * m_depth, 1, m_depth, key, &distance);
            if (distance < nearest) {
                nearest = distance;
                m_state.centre[row] = centre;
            }
        }
    }

    Bound freshTop() {
        for (;;) {
            const Bound top = m_bounds.top();
            const auto row = static_cast<std::size_t>(top.row);
            if (m_state.compared[row] == static_cast<std::int32_t>(m_state.order.size()) &&
                m_state.distances[row] == top.distance)
                return top;
            m_bounds.pop();
            compare(top.row);
            m_bounds.push({m_state.distances[row], top.row});
        }
    }

    const Kernels& m_kernels;
    const float* m_keys;
    std::int64_t m_rows, m_depth;
    GreedyCenters& m_state;
    std::vector<float> m_centres; // contiguous, so that a row is compared with missed centres in one sweep
    std::vector<float> m_missed;
    std::vector<std::vector<float>> m_between; ///< of the first kMostPaired centres: squared distances to later ones
    std::priority_queue<Bound> m_bounds;
};

} // namespace

std::vector<GreedyCenters> CpuEngine::greedyCenters(const Tensor& keys, const CentersRequest& request,
                                                    const Checkpoint& checkpoint) const {
    const std::int64_t heads = keys.size(0), n = keys.size(1), d = keys.size(2);
    assert(static_cast<std::int64_t>(request.first.size()) == heads && 1 <= request.count && request.count <= n);
    std::vector<GreedyCenters> runs = request.known;
    runs.resize(static_cast<std::size_t>(heads));
    const TensorView view = viewOf(keys);
    Progress progress(checkpoint, static_cast<double>(heads * request.count));
    m_workers.each(heads, [&](std::int64_t h) {
        GreedyCenters& state = runs[h];
        GreedyRun run(m_kernels, view.head(h), n, d, state);
        run.begin(request.first[h]);
        for (std::int64_t picks = 1; static_cast<std::int64_t>(state.order.size()) < request.count; ++picks) {
            if (!run.pickNext()) break;
            if (picks % kReportEvery == 0) progress.advance(kReportEvery);
        }
        run.measure();
        if (request.compareAll) run.compareAll();
    });
    return runs;
}

} // namespace kvscope::cpu
