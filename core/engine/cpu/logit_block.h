#pragma once

#include "core/engine/cpu/lane_block.h"
#include "core/engine/cpu/logit_mask.h"
#include "core/engine/cpu/workers.h"
#include "core/engine/engine.h"

#include <array>
#include <span>
#include <vector>

namespace kvscope::cpu {

/// Memory for the logits of one block, reused by the thread's next block.
struct LogitScratch {
    AlignedMemory<double> exact;
    AlignedMemory<float> fast;
};

/// For each block that a thread computes at once.
using BlockScratch = std::array<LogitScratch, kMostBlocks>;

/// The logits of up to 32 queries over a list of keys, [terms, lanes], stored so that Q K^T is computed once and read
/// three times: for each query's maximum, for the exponentials, and for the weighted sums. A masked key has logit
/// -infinity and weight 0.
class LogitBlock {
public:
    LogitBlock(const Kernels& kernels, const AttentionRule& rule, const std::vector<QueryLane>& queries, std::int64_t d,
               LogitScratch& scratch, std::int64_t capacity);

    /// Computes the logits of further terms; advances progress by one per logit.
    void append(const KeyTerms& terms, Progress& progress) { append({this, 1}, terms, progress); }
    /// The same for several blocks, which share keys that are widened once.
    static void append(std::span<LogitBlock> blocks, const KeyTerms& terms, Progress& progress);

    /// After all terms are appended: turns the logits l of further terms, up to `end`, into e^(l - rowMax) with each
    /// lane's largest logit of all terms (X4: no overflow, the shift cancels). Returns the sum of weights[term] e^(l -
    /// rowMax) of each lane over the terms before `end`; no weights: 1. The lane's attention sink counts as one more
    /// term of weight 1, in the sum and in the largest logit.
    std::array<double, kMaxLanes> exponentiate(std::int64_t end, const double* weights = nullptr);
    std::array<double, kMaxLanes> exponentiate() { return exponentiate(m_terms); }

    /// Multiplies the values of further terms, up to `end`, by their weights; returns each lane's sum of squares over
    /// the terms before `end`.
    const std::array<double, kMaxLanes>& weigh(std::int64_t end, const double* weights);

    /// best[lane] = the largest of best[lane] and the values of terms [first, first + count).
    void updateMax(std::int64_t first, std::int64_t count, double* best) const;
    /// sums[t] += sum of value * factors[lane] of term first + t over lanes [begin, end), for t < count.
    void addAcrossLanes(std::int64_t first, std::int64_t count, const double* factors, std::int64_t begin,
                        std::int64_t end, double* sums) const;

    std::int64_t lanes() const { return m_lanes.lanes(); }
    std::int64_t terms() const { return m_terms; }
    const double* values() const { return m_values; }
    double rowMax(std::size_t lane) const { return m_rowMaxima[lane]; }

private:
    void appendTile(const KeyTerms& terms, std::int64_t begin, std::int64_t end, const double* keys);

    const Kernels& m_kernels;
    const AttentionRule& m_rule;
    std::int64_t m_depth;
    LaneBlock m_lanes;
    LogitMask m_mask;
    std::int64_t m_terms = 0, m_exponentiated = 0, m_weighed = 0;
    double* m_values;
    std::array<double, kMaxLanes> m_sinks, m_rowMaxima, m_totals{}, m_squares{};
};

} // namespace kvscope::cpu
