#pragma once

#include "core/engine/requests.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <vector>

namespace kvscope::cpu {

/// A query of a block: its vector, its time position and the logit of its head's attention sink (-infinity: none).
struct QueryLane {
    const float* row;
    std::int64_t position;
    double sink;
};

inline std::vector<const float*> rowsOf(const std::vector<QueryLane>& queries) {
    std::vector<const float*> rows;
    for (const QueryLane& query : queries) rows.push_back(query.row);
    return rows;
}

/// Rows of keys [*, d] for a block, in order: rows first .. first + count - 1, or indices[0 .. count - 1].
struct KeyTerms {
    const float* rows;
    std::int64_t first, count;
    const TokenIndex* indices = nullptr;
    /// Time position of each row of `rows`; null: row r is token r.
    const TokenIndex* positions = nullptr;
    /// For non-causal attention: a query at position j sees rows i with |i - j| < reach, and all rows from `padding`
    /// on. 0: the causal mask with the rule's window.
    std::int64_t reach = 0, padding = 0;
    /// The same terms in double, [count, d]; null: they are widened when they are needed.
    const double* wideRows = nullptr;

    std::int64_t rowOf(std::int64_t term) const { return indices ? std::int64_t{indices[term]} : first + term; }
    std::int64_t positionOf(std::int64_t term) const {
        return positions ? std::int64_t{positions[rowOf(term)]} : rowOf(term);
    }
};

/// Sets masked logits of a block to -infinity.
class LogitMask {
public:
    /// For a block with so many lanes, padding included. Window 0: none.
    LogitMask(const std::vector<QueryLane>& queries, std::int64_t lanes, std::int64_t window) : m_window(window) {
        for (const QueryLane& query : queries) m_positions.push_back(query.position);
        const auto [earliest, latest] = std::ranges::minmax_element(m_positions);
        m_earliest = *earliest;
        m_latest = *latest;
        m_positions.resize(static_cast<std::size_t>(lanes), m_latest); // padding lanes: any position
    }

    /// logits [count, lanes] of terms first .. first + count - 1.
    template <class Real> void hide(const KeyTerms& terms, std::int64_t first, std::int64_t count, Real* logits) const {
        if (seenByAll(terms, first, count)) return;
        for (std::int64_t k = 0; k < count; ++k, logits += m_positions.size())
            if (terms.reach > 0)
                hideFar(terms, terms.positionOf(first + k), logits);
            else
                hideLater(terms.positionOf(first + k), logits);
    }

private:
    /// True for most panels: terms in time order before every query.
    bool seenByAll(const KeyTerms& terms, std::int64_t first, std::int64_t count) const {
        const bool inOrder = !terms.indices && !terms.positions;
        return inOrder && terms.reach == 0 && m_window == 0 && terms.first + first + count <= m_earliest + 1;
    }

    /// Causal mask and sliding window: query j sees i <= j and, with a window, i > j - window.
    template <class Real> void hideLater(std::int64_t key, Real* row) const {
        if (key <= m_earliest && (m_window == 0 || key > m_latest - m_window))
            return; // every query of the block sees it
        for (std::size_t lane = 0; lane < m_positions.size(); ++lane)
            if (key > m_positions[lane] || (m_window > 0 && key <= m_positions[lane] - m_window))
                row[lane] = -std::numeric_limits<Real>::infinity();
    }

    template <class Real> void hideFar(const KeyTerms& terms, std::int64_t key, Real* row) const {
        for (std::size_t lane = 0; key < terms.padding && lane < m_positions.size(); ++lane)
            if (std::abs(key - m_positions[lane]) >= terms.reach) row[lane] = -std::numeric_limits<Real>::infinity();
    }

    std::vector<std::int64_t> m_positions;
    std::int64_t m_window, m_earliest, m_latest;
};

} // namespace kvscope::cpu
