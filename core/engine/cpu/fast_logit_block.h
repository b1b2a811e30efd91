#pragma once

#include "core/engine/cpu/logit_block.h"

namespace kvscope::cpu {

/// LogitBlock in float, for Arithmetic::Fast: about three times as fast, logits off by about two units in the last
/// place, the last digits dependent on the instruction set. All 32 lanes are computed, so it pays from 16 queries on.
class FastLogitBlock {
public:
    static bool pays(bool fast, std::size_t queries) { return fast && queries > kMaxLanes / 2; }

    FastLogitBlock(const Kernels& kernels, const AttentionRule& rule, const std::vector<QueryLane>& queries,
                   std::int64_t d, LogitScratch& scratch, std::int64_t capacity);

    /// As in LogitBlock; rows without indices.
    void append(const KeyTerms& terms, Progress& progress);
    const std::array<double, kMaxLanes>& exponentiate();
    void updateMax(std::int64_t first, std::int64_t count, double* best) const;
    void addAcrossLanes(std::int64_t first, std::int64_t count, const double* factors, std::int64_t begin,
                        std::int64_t end, double* sums) const;

    static constexpr std::int64_t lanes() { return kMaxLanes; }
    std::int64_t terms() const { return m_terms; }
    const float* values() const { return m_values; }
    double rowMax(std::size_t lane) const { return double{m_rowMaxima[lane]}; }

private:
    const Kernels& m_kernels;
    const AttentionRule& m_rule;
    std::int64_t m_depth;
    AlignedMemory<float> m_lanes; ///< [d, 32]
    LogitMask m_mask;
    std::int64_t m_terms = 0;
    float* m_values;
    std::array<float, kMaxLanes> m_rowMaxima;
    std::array<double, kMaxLanes> m_sinks, m_totals{};
};

} // namespace kvscope::cpu
