// Self-balancing walks (BalanceKV): each row in turn gets the sign that opposes the signed sum of the earlier rows.
// Walks run in parallel. Within a walk 32 rows at a time are multiplied with all earlier rows in register panels, and
// only the additions of signs are sequential; the kernel matrix is never stored whole.
#include "core/engine/cpu/cpu_engine.h"

#include "core/base/error.h"
#include "core/engine/cpu/lane_block.h"

#include <tbb/enumerable_thread_specific.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <string>

namespace kvscope::cpu {

namespace {

using Lanes = std::array<double, kMaxLanes>;

/// Rows of keys or values of one walk.
struct WalkRows {
    std::vector<const float*> rows;
    std::int64_t width = 0;
    std::vector<double> wide; ///< [rows, width]

    void collect(const Kernels& kernels, const Tensor& tensor, const BalancingWalk& walk) {
        width = tensor.size(2);
        rows.clear();
        wide.resize(walk.rows.size() * static_cast<std::size_t>(width));
        const float* head = viewOf(tensor).head(walk.head);
        double* to = wide.data();
        for (const TokenIndex row : walk.rows) {
            assert(0 <= row && row < tensor.size(1));
            rows.push_back(head + row * width);
            kernels.widen(rows.back(), width, to);
            to += width;
        }
    }
};

struct Scratch {
    WalkRows keys, values;
    std::vector<double> terms, weights, signs; ///< per row; signs as doubles
    std::vector<double> matrix, products;      ///< [rows up to the block's end, lanes]
};

/// <k_i, c> - <c, c> / 2 per row: <k_i - c, k_j - c> = <k_i, k_j> - term_i - term_j.
void fillTerms(const BalancingWalks& input, const BalancingWalk& walk, Scratch& s) {
    s.terms.assign(walk.rows.size(), 0.0);
    const std::int64_t d = s.keys.width;
    std::vector<double> centre(static_cast<std::size_t>(d));
    if (walk.meanOver > 0) {
        for (std::size_t i = 0; i < s.keys.wide.size(); ++i) centre[i % static_cast<std::size_t>(d)] += s.keys.wide[i];
        for (double& x : centre) x /= static_cast<double>(walk.meanOver);
    } else if (!input.centres.empty()) {
        const float* given = input.centres.data.data() + walk.head * input.centres.shape[1];
        std::copy_n(given, d, centre.begin());
    } else {
        return;
    }
    double square = 0;
    for (const double x : centre) square += x * x;
    const double* row = s.keys.wide.data();
    for (double& term : s.terms) {
        for (const double x : centre) term += x * *row++;
        term -= square / 2;
    }
}

class Walker {
public:
    Walker(const Kernels& kernels, const BalancingWalks& input, Scratch& scratch)
        : m_kernels(kernels), m_input(input), m_s(scratch) {}

    BalancingSteps run(const BalancingWalk& walk, Progress& progress) {
        const auto m = static_cast<std::int64_t>(walk.rows.size());
        assert(static_cast<std::int64_t>(walk.uniforms.size()) == m);
        m_s.keys.collect(m_kernels, m_input.keys, walk);
        if (!m_input.values.empty()) m_s.values.collect(m_kernels, m_input.values, walk);
        fillTerms(m_input, walk, m_s);
        m_s.weights = walk.weights.empty() ? std::vector<double>(walk.rows.size(), 1.0) : walk.weights;
        m_s.signs.assign(walk.rows.size(), 0.0);
        BalancingSteps steps;
        for (std::int64_t begin = 0; begin < m && steps.failedAt < 0; begin += kMaxLanes) {
            const std::int64_t end = std::min(m, begin + kMaxLanes);
            fillMatrix(walk, begin, end);
            walkBlock(walk, begin, end, steps);
            progress.advance(static_cast<double>(end - begin) * static_cast<double>(end));
        }
        return steps;
    }

private:
    /// M of rows [0, end) against the lanes, rows [begin, end).
    void fillMatrix(const BalancingWalk& walk, std::int64_t begin, std::int64_t end) {
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
                                   .logScale = walk.logScale,
                                   .logShift = walk.logShift,
                                   .valueScale = walk.valueScale,
                                   .valueConstant = walk.valueConstant});
    }

    void multiply(const WalkRows& rows, std::int64_t begin, std::int64_t end, std::vector<double>& out) {
        const LaneBlock lanes({rows.rows.begin() + begin, rows.rows.begin() + end}, rows.width);
        m_lanes = lanes.lanes();
        out.resize(static_cast<std::size_t>(end * m_lanes));
        m_kernels.exactProduct(lanes.against(rows.wide.data(), end, out.data()));
    }

    void walkBlock(const BalancingWalk& walk, std::int64_t begin, std::int64_t end, BalancingSteps& steps) {
        Lanes y{};
        m_kernels.addScaledRows(m_s.matrix.data(), begin, m_lanes, m_s.signs.data(), y.data());
        for (std::int64_t i = begin; i < end; ++i) {
            const double* row = m_s.matrix.data() + i * m_lanes;
            const double product = y[i - begin];
            refuseNaN(product, row[i - begin], walk, i);
            if (std::abs(product) > walk.failAbove) {
                steps.failedAt = i;
                return;
            }
            const double sign = signOf(walk, i, product, steps);
            m_s.signs[i] = sign;
            steps.signs.push_back(static_cast<std::int8_t>(sign));
            steps.products.push_back(product);
            steps.diagonal.push_back(row[i - begin]);
            m_kernels.addScaledRows(row, 1, m_lanes, &sign, y.data());
        }
    }

    static double signOf(const BalancingWalk& walk, std::int64_t i, double product, BalancingSteps& steps) {
        if (!walk.silent.empty() && walk.silent[i] != 0) return 0;
        if (i == 0 && walk.firstIsPlus) return 1;
        const double p = 0.5 - walk.gamma * product, u = walk.uniforms[i];
        steps.margin = std::min(steps.margin, std::abs(u - p));
        return u < p ? 1 : -1;
    }

    static void refuseNaN(double product, double diagonal, const BalancingWalk& walk, std::int64_t i) {
        if (std::isfinite(product) && std::isfinite(diagonal)) return;
        throw Error({"the balancing walk of head " + std::to_string(walk.head) +
                         " meets a number that is not finite "
                         "at row " +
                         std::to_string(walk.rows[i]),
                     "keys and values", "look for NaN or infinity in the capture's keys and values"});
    }

    const Kernels& m_kernels;
    const BalancingWalks& m_input;
    Scratch& m_s;
    std::int64_t m_lanes = 0;
};

} // namespace

std::vector<BalancingSteps> CpuEngine::balancingWalks(const BalancingWalks& input, const Checkpoint& checkpoint) const {
    double work = 0;
    for (const BalancingWalk& walk : input.walks)
        work += static_cast<double>(walk.rows.size()) * static_cast<double>(walk.rows.size());
    Progress progress(checkpoint, std::max(1.0, work));
    std::vector<BalancingSteps> result(input.walks.size());
    tbb::enumerable_thread_specific<Scratch> scratch;
    m_workers.each(static_cast<std::int64_t>(input.walks.size()), [&](std::int64_t piece) {
        result[piece] = Walker(m_kernels, input, scratch.local()).run(input.walks[piece], progress);
    });
    return result;
}

} // namespace kvscope::cpu
