// The three passes over a block of logits as in logit_block.cpp, in float and on the keys as stored.
#include "core/engine/cpu/fast_logit_block.h"

#include "core/base/portable_math.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <utility>

namespace kvscope::cpu {

namespace {

constexpr std::int64_t kPanelsPerStep = 256; // some milliseconds between checkpoints

constexpr std::int64_t kKeysInCache = 1024; // of 128 numbers: half of an L2 cache

} // namespace

FastLogitBlock::FastLogitBlock(const Kernels& kernels, const AttentionRule& rule, const std::vector<QueryLane>& queries,
                               std::int64_t d, LogitScratch& scratch, std::int64_t capacity)
    : m_kernels(kernels), m_rule(rule), m_depth(d), m_mask(queries, kMaxLanes, rule.slidingWindow),
      m_values(scratch.fast.atLeast(capacity * kMaxLanes)) {
    float* to = m_lanes.atLeast(d * kMaxLanes);
    if (queries.size() < kMaxLanes) std::fill(to, to + d * kMaxLanes, 0.0F);
    for (std::size_t lane = 0; lane < queries.size(); ++lane)
        for (std::int64_t c = 0; c < d; ++c) to[static_cast<std::size_t>(c * kMaxLanes) + lane] = queries[lane].row[c];
    m_sinks.fill(-std::numeric_limits<double>::infinity());
    std::ranges::transform(queries, m_sinks.begin(), [](const QueryLane& query) { return query.sink; });
    std::ranges::transform(m_sinks, m_rowMaxima.begin(), [](double x) { return static_cast<float>(x); });
}

void FastLogitBlock::append(const KeyTerms& terms, Progress& progress) {
    assert(!terms.indices);
    double pending = 0;
    for (std::int64_t first = 0; first < terms.count; first += kPanelRows) {
        const std::int64_t count = std::min(kPanelRows, terms.count - first);
        float* logits = m_values + (m_terms + first) * kMaxLanes;
        const float* keys = terms.rows + (terms.first + first) * m_depth;
        if (terms.count > kKeysInCache) prefetch(keys + count * m_depth, kPanelRows * m_depth);
        m_kernels.fastLogits({.lanes = m_lanes.data(),
                              .keys = keys,
                              .terms = count,
                              .depth = m_depth,
                              .scaling = static_cast<float>(m_rule.scaling),
                              .softcap = static_cast<float>(m_rule.softcap),
                              .logits = logits});
        m_mask.hide(terms, first, count, logits);
        m_kernels.fastUpdateRowMaxima(logits, count, m_rowMaxima.data());
        pending += static_cast<double>(count * kMaxLanes);
        if (first / kPanelRows % kPanelsPerStep == 0) progress.advance(std::exchange(pending, 0.0));
    }
    progress.advance(pending);
    m_terms += terms.count;
}

const std::array<double, kMaxLanes>& FastLogitBlock::exponentiate() {
    m_totals.fill(0.0);
    std::array<float, kMaxLanes> shifts = m_rowMaxima;
    for (float& shift : shifts) // for a query that sees no key: all its terms become 0
        shift = std::max(shift, std::numeric_limits<float>::lowest());
    m_kernels.fastExponentials(m_values, m_terms, shifts.data(), m_totals.data());
    for (std::size_t lane = 0; lane < m_sinks.size(); ++lane)
        if (std::isfinite(m_sinks[lane])) m_totals[lane] += portableExp(m_sinks[lane] - double{shifts[lane]});
    return m_totals;
}

void FastLogitBlock::updateMax(std::int64_t first, std::int64_t count, double* best) const {
    std::array<float, kMaxLanes> rowMax;
    rowMax.fill(-std::numeric_limits<float>::infinity());
    m_kernels.fastUpdateRowMaxima(m_values + first * kMaxLanes, count, rowMax.data());
    for (std::size_t lane = 0; lane < rowMax.size(); ++lane) best[lane] = std::max(best[lane], double{rowMax[lane]});
}

void FastLogitBlock::addAcrossLanes(std::int64_t first, std::int64_t count, const double* factors, std::int64_t begin,
                                    std::int64_t end, double* sums) const {
    std::array<float, kMaxLanes> floatFactors{};
    for (auto lane = static_cast<std::size_t>(begin); std::cmp_less(lane, end); ++lane)
        floatFactors[lane] = static_cast<float>(factors[lane]);
    m_kernels.fastAddAcrossLanes(m_values + first * kMaxLanes, count, floatFactors.data(), sums);
}

} // namespace kvscope::cpu
