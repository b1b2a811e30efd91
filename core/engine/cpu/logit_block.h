#pragma once

#include "core/engine/cpu/lane_block.h"
#include "core/engine/cpu/workers.h"
#include "core/engine/engine.h"

#include <array>
#include <limits>

namespace kvscope::cpu {

/// Memory for the logits of one block, used again by the next block of the same thread.
class LogitScratch {
public:
    double* atLeast(std::int64_t count);

private:
    std::int64_t m_size = 0;
    std::unique_ptr<double[]> m_values;
};

/// One query of a block: its numbers and its time position.
struct QueryLane {
    const float* row;
    std::int64_t position;
};

/// Rows of keys [*, d] that a block looks at, in order: rows first .. first + count - 1, or indices[0 .. count - 1].
struct KeyTerms {
    const float* rows;
    std::int64_t first, count;
    const TokenIndex* indices = nullptr;
    /// Time position of each row of `rows`; null: row r is token r.
    const TokenIndex* positions = nullptr;
    /// Of attention in both directions of time: a query at position j sees rows i with |i - j| < reach, and all rows from
    /// `padding` on. 0: the causal mask with the rule's window.
    std::int64_t reach = 0, padding = 0;

    std::int64_t rowOf(std::int64_t term) const { return indices ? std::int64_t{indices[term]} : first + term; }
    std::int64_t positionOf(std::int64_t term) const {
        return positions ? std::int64_t{positions[rowOf(term)]} : rowOf(term);
    }
};

/// The logits of up to 32 queries over a list of keys, [terms, lanes], kept in memory so that Q K^T is computed once
/// and read three times: for the largest logit of each query, for the exponentials and for what they weigh.
/// A hidden key has logit -infinity and ends as weight 0.
class LogitBlock {
public:
    LogitBlock(const Kernels& kernels, const AttentionRule& rule, const std::vector<QueryLane>& queries, std::int64_t d,
               LogitScratch& scratch, std::int64_t capacity);

    /// Computes the logits of further terms; advances progress by one per logit.
    void append(const KeyTerms& terms, Progress& progress);

    /// Turns logits l into e^(l - top) with each lane's largest logit (X4: no overflow, the shift cancels).
    /// Returns the sum of weights[term] e^(l - top) of each lane; no weights: 1.
    const std::array<double, kMaxLanes>& exponentiate(const double* weights);

    std::int64_t lanes() const { return m_lanes.lanes(); }
    std::int64_t terms() const { return m_terms; }
    const double* values() const { return m_values; }
    double top(std::size_t lane) const { return m_tops[lane]; }

private:
    void hide(const KeyTerms& terms, std::int64_t first, std::int64_t count, double* logits) const;
    void hideFar(const KeyTerms& terms, std::int64_t first, std::int64_t count, double* logits) const;

    const Kernels& m_kernels;
    const AttentionRule& m_rule;
    LaneBlock m_lanes;
    Panel m_panel;
    std::vector<std::int64_t> m_positions;
    std::int64_t m_earliest, m_latest; ///< positions of the queries
    std::int64_t m_terms = 0;
    double* m_values;
    std::array<double, kMaxLanes> m_tops, m_totals{};
};

} // namespace kvscope::cpu
