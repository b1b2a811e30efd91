// Logits of a block of queries: products, scaling, softcap and the mask, panel by panel while the numbers are still in
// the first-level cache, then the exponentials in one pass.
#include "core/engine/cpu/logit_block.h"

#include <algorithm>
#include <cassert>
#include <cstdlib>
#include <utility>

namespace kvscope::cpu {

namespace {

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();
constexpr std::int64_t kPanelsPerStep = 128; // some milliseconds between checkpoints

std::vector<const float*> rowsOf(const std::vector<QueryLane>& queries) {
    std::vector<const float*> rows;
    for (const QueryLane& query : queries)
        rows.push_back(query.row);
    return rows;
}

} // namespace

double* LogitScratch::atLeast(std::int64_t count) {
    if (count > m_size) {
        m_values.reset();
        m_values.reset(new double[static_cast<std::size_t>(count)]); // not zeroed: all of it is written first
        m_size = count;
    }
    return m_values.get();
}

LogitBlock::LogitBlock(const Kernels& kernels, const AttentionRule& rule, const std::vector<QueryLane>& queries,
                       std::int64_t d, LogitScratch& scratch, std::int64_t capacity)
    : m_kernels(kernels), m_rule(rule), m_lanes(rowsOf(queries), d), m_panel(kernels, d),
      m_values(scratch.atLeast(capacity * m_lanes.lanes())) {
    for (const QueryLane& query : queries)
        m_positions.push_back(query.position);
    const auto [earliest, latest] = std::minmax_element(m_positions.begin(), m_positions.end());
    m_earliest = *earliest;
    m_latest = *latest;
    m_positions.resize(static_cast<std::size_t>(m_lanes.lanes()), m_latest); // padding lanes: any position
    m_tops.fill(kMinusInfinity);
}

void LogitBlock::append(const KeyTerms& terms, Progress& progress) {
    double pending = 0;
    for (std::int64_t first = 0; first < terms.count; first += kPanelRows) {
        const std::int64_t count = std::min(kPanelRows, terms.count - first);
        double* logits = m_values + (m_terms + first) * lanes();
        const TokenIndex* indices = terms.indices ? terms.indices + first : nullptr;
        const double* keys = m_panel.fill(terms.rows, terms.first + first, count, indices);
        m_kernels.exactProduct(m_lanes.against(keys, count, logits));
        m_kernels.shapeLogits(logits, count * lanes(), m_rule.scaling, m_rule.softcap);
        if (terms.reach > 0)
            hideFar(terms, first, count, logits);
        else
            hide(terms, first, count, logits);
        m_kernels.raiseTops(logits, count, lanes(), m_tops.data());
        pending += static_cast<double>(count * lanes());
        if (first / kPanelRows % kPanelsPerStep == 0)
            progress.advance(std::exchange(pending, 0.0));
    }
    progress.advance(pending);
    m_terms += terms.count;
}

/// Causal mask and sliding window: query j sees i <= j and, with a window, i > j - window.
void LogitBlock::hide(const KeyTerms& terms, std::int64_t first, std::int64_t count, double* logits) const {
    const std::int64_t window = m_rule.slidingWindow;
    for (std::int64_t k = 0; k < count; ++k) {
        const std::int64_t key = terms.positionOf(first + k);
        if (key <= m_earliest && (window == 0 || key > m_latest - window))
            continue; // every query of the block sees it
        double* row = logits + k * lanes();
        for (std::int64_t lane = 0; lane < lanes(); ++lane) {
            const std::int64_t query = m_positions[static_cast<std::size_t>(lane)];
            if (key > query || (window > 0 && key <= query - window))
                row[lane] = kMinusInfinity;
        }
    }
}

void LogitBlock::hideFar(const KeyTerms& terms, std::int64_t first, std::int64_t count, double* logits) const {
    for (std::int64_t k = 0; k < count; ++k) {
        const std::int64_t key = terms.positionOf(first + k);
        for (std::int64_t lane = 0; key < terms.padding && lane < lanes(); ++lane)
            if (std::abs(key - m_positions[static_cast<std::size_t>(lane)]) >= terms.reach)
                logits[k * lanes() + lane] = kMinusInfinity;
    }
}

const std::array<double, kMaxLanes>& LogitBlock::exponentiate(const double* weights) {
    m_totals.fill(0.0);
    m_kernels.exponentials(m_values, m_terms, lanes(), m_tops.data(), weights, m_totals.data());
    return m_totals;
}

} // namespace kvscope::cpu
