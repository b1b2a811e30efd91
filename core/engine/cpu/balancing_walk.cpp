// Self-balancing walks (BalanceKV): each row in turn gets the sign that opposes the signed sum of the earlier rows.
// Walks run in parallel. Within a walk 32 rows at a time are multiplied with all earlier rows in register panels, and
// only the additions of signs are sequential; the kernel matrix is never stored whole. Where only signs are asked for,
// sums run in float with a bound on their error, and only rows whose sign the bound leaves open are summed in double.
#include "core/engine/cpu/cpu_engine.h"

#include "core/base/error.h"
#include "core/engine/cpu/lane_block.h"
#include "core/engine/cpu/walk_intervals.h"

#include <tbb/enumerable_thread_specific.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <map>
#include <string>

namespace kvscope::cpu {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

using Lanes = std::array<double, kMaxLanes>;

/// Rows of keys or values of one walk.
struct WalkRows {
    std::vector<const float*> rows;
    std::int64_t width = 0;
    std::vector<double> wide; ///< [rows, width]

    void collect(const Tensor& tensor, const BalancingWalk& walk) {
        rows.clear();
        if (tensor.empty()) return;
        width = tensor.size(2);
        const float* head = viewOf(tensor).head(walk.head);
        for (const TokenIndex row : walk.rows) {
            assert(0 <= row && row < tensor.size(1));
            rows.push_back(head + row * width);
        }
    }

    void widen(const Kernels& kernels) {
        wide.resize(rows.size() * static_cast<std::size_t>(width));
        for (std::size_t i = 0; i < rows.size(); ++i)
            kernels.widen(rows[i], width, wide.data() + static_cast<std::int64_t>(i) * width);
    }
};

struct Scratch {
    explicit Scratch(const Kernels& kernels) : intervals(kernels) {}

    WalkRows keys, values;
    std::vector<double> centre;                ///< c of the walk; empty: 0
    std::vector<double> terms, weights, signs; ///< per row; signs as doubles
    std::vector<double> matrix, products;      ///< [rows up to the block's end, lanes]
    WalkIntervals intervals;
};

/// A drawn sign that floats settled; its |u - p| is at least `least`.
struct OpenMargin {
    double least;
    std::int64_t row;
};

struct WalkResult {
    BalancingSteps steps;
    double margin = kInfinity; ///< upper bound of the smallest margin, the open ones included
    std::vector<OpenMargin> open;
};

class Walker {
public:
    Walker(const Kernels& kernels, const BalancingWalks& input, Scratch& scratch, const BalancingWalk& walk)
        : m_kernels(kernels), m_input(input), m_s(scratch), m_walk(walk) {
        m_s.keys.collect(m_input.keys, walk);
        m_s.values.collect(m_input.values, walk);
        m_s.signs.assign(walk.rows.size(), 0.0);
        fillCentre();
    }

    WalkResult run(Progress& progress) {
        const std::int64_t m = std::ssize(m_walk.rows);
        assert(std::ssize(m_walk.uniforms) == m);
        WalkResult result;
        bool inFloat = m_input.signsOnly && m_s.intervals.begin(m_walk, m_s.keys.rows, m_s.keys.width, m_s.values.rows,
                                                                m_s.values.width, m_s.centre);
        for (std::int64_t begin = 0; begin < m && result.steps.failedAt < 0; begin += kMaxLanes) {
            const std::int64_t end = std::min(m, begin + kMaxLanes);
            if (inFloat)
                walkBlockInFloat(begin, end, result);
            else
                walkBlock(begin, end, result.steps);
            // If many rows need doubles anyway, float sums are wasted time.
            inFloat = inFloat && result.steps.inDouble <= kMaxLanes + end / 4;
            progress.advance(static_cast<double>(end - begin) * static_cast<double>(end));
        }
        result.margin = std::min(result.margin, result.steps.margin);
        return result;
    }

    /// The smallest margin of the walk, with the open margins that may be at most `best` computed in double.
    double settledMargin(const WalkResult& result, double best) {
        std::copy(result.steps.signs.begin(), result.steps.signs.end(), m_s.signs.begin());
        double margin = result.steps.margin;
        for (const OpenMargin& open : result.open)
            if (open.least <= best) margin = std::min(margin, std::abs(marginOf(open.row, exactProduct(open.row))));
        return margin;
    }

private:
    static constexpr std::int64_t kGroup = 8; ///< rows whose sums are computed at once when one of them is needed

    void fillCentre() {
        const std::int64_t d = m_s.keys.width;
        m_s.centre.clear();
        if (m_walk.meanOver > 0) {
            m_s.centre.assign(static_cast<std::size_t>(d), 0.0);
            for (const float* row : m_s.keys.rows) m_kernels.addRows(row, 1, d, nullptr, m_s.centre.data());
            for (double& x : m_s.centre) x /= static_cast<double>(m_walk.meanOver);
        } else if (!m_input.centres.empty()) {
            const float* given = m_input.centres.data.data() + m_walk.head * m_input.centres.shape[1];
            m_s.centre.assign(given, given + d);
        }
    }

    /// Prepares the first sum in double.
    void widen() {
        if (m_isWide) return;
        m_isWide = true;
        m_s.keys.widen(m_kernels);
        m_s.values.widen(m_kernels);
        m_s.weights = m_walk.weights.empty() ? std::vector<double>(m_walk.rows.size(), 1.0) : m_walk.weights;
        fillTerms();
    }

    /// <k_i, c> - <c, c> / 2 per row: <k_i - c, k_j - c> = <k_i, k_j> - term_i - term_j.
    void fillTerms() {
        m_s.terms.assign(m_walk.rows.size(), 0.0);
        if (m_s.centre.empty()) return;
        double square = 0;
        std::vector<double> lanes(m_s.centre.size() * kLaneStep), out(m_s.terms.size() * kLaneStep); // one lane is used
        for (std::size_t c = 0; c < m_s.centre.size(); ++c) {
            square += m_s.centre[c] * m_s.centre[c];
            lanes[c * kLaneStep] = m_s.centre[c];
        }
        m_kernels.product({.lanes = lanes.data(),
                           .laneStride = kLaneStep,
                           .laneCount = kLaneStep,
                           .factors = m_s.keys.wide.data(),
                           .factorCount = std::ssize(m_s.terms),
                           .factorStride = m_s.keys.width,
                           .depthStride = 1,
                           .depth = m_s.keys.width,
                           .out = out.data(),
                           .outStride = kLaneStep,
                           .accumulate = false});
        for (std::size_t i = 0; i < m_s.terms.size(); ++i) m_s.terms[i] = out[i * kLaneStep] - square / 2;
    }

    /// M of rows [0, end) against the lanes, which are rows [begin, end).
    void fillMatrix(std::int64_t begin, std::int64_t end) {
        widen();
        const double* products = nullptr;
        if (!m_input.values.empty()) {
            multiply(m_s.values, begin, end, m_s.products);
            products = m_s.products.data();
        }
        multiply(m_s.keys, begin, end, m_s.matrix);
        Lanes terms{}, weights{};
        std::copy(m_s.terms.begin() + begin, m_s.terms.begin() + end, terms.begin());
        std::copy(m_s.weights.begin() + begin, m_s.weights.begin() + end, weights.begin());
        m_kernels.balancingKernel({.x = m_s.matrix.data(),
                                   .products = products,
                                   .rows = end,
                                   .lanes = m_lanes,
                                   .rowTerms = m_s.terms.data(),
                                   .laneTerms = terms.data(),
                                   .rowWeights = m_s.weights.data(),
                                   .laneWeights = weights.data(),
                                   .logScale = m_walk.logScale,
                                   .logShift = m_walk.logShift,
                                   .valueScale = m_walk.valueScale,
                                   .valueConstant = m_walk.valueConstant});
        m_filled = begin;
    }

    void multiply(const WalkRows& rows, std::int64_t begin, std::int64_t end, std::vector<double>& out) {
        const LaneBlock lanes({rows.rows.begin() + begin, rows.rows.begin() + end}, rows.width);
        m_lanes = lanes.lanes();
        out.resize(static_cast<std::size_t>(end * m_lanes));
        m_kernels.exactProduct(lanes.against(rows.wide.data(), end, out.data()));
    }

    void walkBlock(std::int64_t begin, std::int64_t end, BalancingSteps& steps) {
        fillMatrix(begin, end);
        Lanes y{};
        m_kernels.addScaledRows(m_s.matrix.data(), begin, m_lanes, m_s.signs.data(), y.data());
        for (std::int64_t i = begin; i < end; ++i) {
            const double* row = m_s.matrix.data() + i * m_lanes;
            const double product = y[i - begin];
            refuseNaN(product, row[i - begin], i);
            if (std::abs(product) > m_walk.failAbove) {
                steps.failedAt = i;
                return;
            }
            const double sign = signOf(i, product, steps);
            steps.products.push_back(product);
            steps.diagonal.push_back(row[i - begin]);
            m_kernels.addScaledRows(row, 1, m_lanes, &sign, y.data());
        }
    }

    void walkBlockInFloat(std::int64_t begin, std::int64_t end, WalkResult& result) {
        WalkIntervals& sums = m_s.intervals;
        sums.fillPanel(begin, end);
        for (std::int64_t i = begin; i < end; ++i) {
            const double y = sums.sums()[i - begin], bound = sums.bound(i - begin);
            double sign = 0;
            if (std::abs(y) + bound <= m_walk.failAbove && isSettled(i, y - bound, y + bound)) {
                sign = settledSign(i, y, bound, result);
            } else {
                const double product = exactProduct(i);
                ++result.steps.inDouble;
                if (std::abs(product) > m_walk.failAbove) {
                    result.steps.failedAt = i;
                    return;
                }
                sign = signOf(i, product, result.steps);
            }
            sums.setSign(i, sign);
            m_kernels.addScaledRows(sums.entries(i - begin), 1, kMaxLanes, &sign, sums.sums());
        }
    }

    /// y_i in double, as walkBlock computes it.
    double exactProduct(std::int64_t i) {
        const std::int64_t begin = i / kGroup * kGroup, end = std::min(begin + kGroup, std::ssize(m_walk.rows));
        if (m_filled != begin) fillMatrix(begin, end);
        Lanes y{};
        m_kernels.addScaledRows(m_s.matrix.data(), i, m_lanes, m_s.signs.data(), y.data());
        refuseNaN(y[i - begin], m_s.matrix[i * m_lanes + i - begin], i);
        return y[i - begin];
    }

    bool isDrawn(std::int64_t i) const {
        return (m_walk.silent.empty() || m_walk.silent[i] == 0) && !(i == 0 && m_walk.firstIsPlus);
    }
    double marginOf(std::int64_t i, double product) const {
        return m_walk.uniforms[i] - (0.5 - m_walk.gamma * product);
    }
    /// The sign of row i, whose y is `product`.
    double signAt(std::int64_t i, double product) const {
        if (!m_walk.silent.empty() && m_walk.silent[i] != 0) return 0;
        if (i == 0 && m_walk.firstIsPlus) return 1;
        return m_walk.uniforms[i] < 0.5 - m_walk.gamma * product ? 1 : -1;
    }
    /// Whether every y of the interval gives the same sign: p is monotone in y, even when rounded.
    bool isSettled(std::int64_t i, double least, double most) const {
        return std::isfinite(least) && std::isfinite(most) && signAt(i, least) == signAt(i, most);
    }

    double settledSign(std::int64_t i, double y, double bound, WalkResult& result) {
        const double sign = signAt(i, y);
        m_s.signs[i] = sign;
        result.steps.signs.push_back(static_cast<std::int8_t>(sign));
        if (!isDrawn(i)) return sign;
        const double a = std::abs(marginOf(i, y - bound)), b = std::abs(marginOf(i, y + bound));
        if (std::min(a, b) <= result.margin) result.open.push_back({std::min(a, b), i});
        result.margin = std::min(result.margin, std::max(a, b));
        return sign;
    }

    double signOf(std::int64_t i, double product, BalancingSteps& steps) {
        const double sign = signAt(i, product);
        m_s.signs[i] = sign;
        steps.signs.push_back(static_cast<std::int8_t>(sign));
        if (isDrawn(i)) steps.margin = std::min(steps.margin, std::abs(marginOf(i, product)));
        return sign;
    }

    void refuseNaN(double product, double diagonal, std::int64_t i) const {
        if (std::isfinite(product) && std::isfinite(diagonal)) return;
        throw Error({"the balancing walk of head " + std::to_string(m_walk.head) +
                         " meets a number that is not finite "
                         "at row " +
                         std::to_string(m_walk.rows[i]),
                     "keys and values", "look for NaN or infinity in the capture's keys and values"});
    }

    const Kernels& m_kernels;
    const BalancingWalks& m_input;
    Scratch& m_s;
    const BalancingWalk& m_walk;
    std::int64_t m_lanes = 0, m_filled = -1; ///< lanes of the matrix, and the row of the first lane
    bool m_isWide = false;
};

/// Computes the smallest margin of each head, in the walks that may have it.
void settleMargins(const BalancingWalks& input, std::vector<WalkResult>& results, const Kernels& kernels,
                   Scratch& scratch) {
    std::map<std::int64_t, double> best;
    for (std::size_t w = 0; w < results.size(); ++w) {
        double& least = best.try_emplace(input.walks[w].head, kInfinity).first->second;
        if (results[w].steps.failedAt < 0) least = std::min(least, results[w].margin);
    }
    for (std::size_t w = 0; w < results.size(); ++w) {
        WalkResult& result = results[w];
        double& least = best[input.walks[w].head];
        const bool mayHaveIt =
            result.steps.failedAt < 0 &&
            std::ranges::any_of(result.open, [least](const OpenMargin& open) { return open.least <= least; });
        if (mayHaveIt)
            result.steps.margin = Walker(kernels, input, scratch, input.walks[w]).settledMargin(result, least);
        least = std::min(least, result.steps.failedAt < 0 ? result.steps.margin : kInfinity);
    }
}

} // namespace

std::vector<BalancingSteps> CpuEngine::balancingWalks(const BalancingWalks& input, const Checkpoint& checkpoint) const {
    double work = 0;
    for (const BalancingWalk& walk : input.walks)
        work += static_cast<double>(walk.rows.size()) * static_cast<double>(walk.rows.size());
    Progress progress(checkpoint, std::max(1.0, work));
    std::vector<WalkResult> results(input.walks.size());
    tbb::enumerable_thread_specific<Scratch> scratch([this] { return Scratch(m_kernels); });
    m_workers.each(std::ssize(input.walks), [&](std::int64_t piece) {
        results[piece] = Walker(m_kernels, input, scratch.local(), input.walks[piece]).run(progress);
    });
    if (input.signsOnly) settleMargins(input, results, m_kernels, scratch.local());
    std::vector<BalancingSteps> steps;
    steps.reserve(results.size());
    for (WalkResult& result : results) steps.push_back(std::move(result.steps));
    return steps;
}

} // namespace kvscope::cpu
