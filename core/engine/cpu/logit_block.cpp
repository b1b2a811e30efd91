// Logits of a block of queries: products, scaling, softcap and mask, panel by panel in the L1 cache, then the
// exponentials in one pass.
#include "core/engine/cpu/logit_block.h"

#include "core/base/portable_math.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <utility>

namespace kvscope::cpu {

LogitBlock::LogitBlock(const Kernels& kernels, const AttentionRule& rule, const std::vector<QueryLane>& queries,
                       std::int64_t d, LogitScratch& scratch, std::int64_t capacity)
    : m_kernels(kernels), m_rule(rule), m_depth(d), m_lanes(rowsOf(queries), d),
      m_mask(queries, m_lanes.lanes(), rule.slidingWindow),
      m_values(scratch.exact.atLeast(capacity * m_lanes.lanes())) {
    m_sinks.fill(-std::numeric_limits<double>::infinity());
    std::ranges::transform(queries, m_sinks.begin(), [](const QueryLane& query) { return query.sink; });
    m_rowMaxima = m_sinks;
}

void LogitBlock::append(std::span<LogitBlock> blocks, const KeyTerms& terms, Progress& progress) {
    const std::int64_t depth = blocks.front().m_depth, step = stepOf(blocks.size());
    Panel tile(blocks.front().m_kernels, depth);
    double pending = 0;
    for (std::int64_t first = 0; first < terms.count; first += step) {
        const std::int64_t count = std::min(step, terms.count - first);
        const TokenIndex* indices = terms.indices ? terms.indices + first : nullptr;
        const double* keys = terms.wideRows ? terms.wideRows + first * depth
                                            : tile.fill(terms.rows, terms.first + first, count, indices);
        for (LogitBlock& block : blocks) {
            block.appendTile(terms, first, first + count, keys);
            pending += static_cast<double>(count * block.lanes());
        }
        if (pending >= kLogitsPerStep) progress.advance(std::exchange(pending, 0.0));
    }
    progress.advance(pending);
    for (LogitBlock& block : blocks) {
        assert(block.m_exponentiated == 0);
        block.m_terms += terms.count;
    }
}

void LogitBlock::appendTile(const KeyTerms& terms, std::int64_t begin, std::int64_t end, const double* keys) {
    for (std::int64_t first = begin; first < end; first += kPanelRows, keys += kPanelRows * m_depth) {
        const std::int64_t count = std::min(kPanelRows, end - first);
        double* logits = m_values + (m_terms + first) * lanes();
        m_kernels.exactProduct(m_lanes.against(keys, count, logits));
        m_kernels.shapeLogits(logits, count * lanes(), m_rule.scaling, m_rule.softcap);
        m_mask.hide(terms, first, count, logits);
        m_kernels.updateRowMaxima(logits, count, lanes(), m_rowMaxima.data());
    }
}

std::array<double, kMaxLanes> LogitBlock::exponentiate(std::int64_t end, const double* weights) {
    const std::int64_t first = std::exchange(m_exponentiated, end);
    m_kernels.exponentials(m_values + first * lanes(), end - first, lanes(), m_rowMaxima.data(),
                           weights ? weights + first : nullptr, m_totals.data());
    std::array<double, kMaxLanes> totals = m_totals;
    for (std::size_t lane = 0; lane < m_sinks.size(); ++lane)
        if (std::isfinite(m_sinks[lane])) totals[lane] += portableExp(m_sinks[lane] - m_rowMaxima[lane]);
    return totals;
}

const std::array<double, kMaxLanes>& LogitBlock::weigh(std::int64_t end, const double* weights) {
    const std::int64_t first = std::exchange(m_weighed, end);
    m_kernels.weigh(m_values + first * lanes(), end - first, lanes(), weights + first, m_squares.data());
    return m_squares;
}

void LogitBlock::updateMax(std::int64_t first, std::int64_t count, double* best) const {
    m_kernels.updateRowMaxima(m_values + first * lanes(), count, lanes(), best);
}

void LogitBlock::addAcrossLanes(std::int64_t first, std::int64_t count, const double* factors, std::int64_t begin,
                                std::int64_t end, double* sums) const {
    m_kernels.addAcrossLanes(m_values + first * lanes(), count, lanes(), factors, begin, end, sums);
}

} // namespace kvscope::cpu
