#pragma once

#include "core/engine/cpu/cpu_tensor.h"
#include "core/engine/cpu/kernels.h"
#include "core/engine/cpu/lane_block.h"
#include "core/engine/cpu/logit_mask.h"
#include "core/engine/cpu/workers.h"
#include "core/engine/recent_sums.h"

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace kvscope::cpu {

/// Up to 32 neighbouring queries of one query head.
struct QueryBlock {
    std::int64_t head, begin, end;
};

/// Keys and values of one KV head.
struct HeadCache {
    HeadRows keys, values;
};

/// The sums of attention for the queries of a block, in units of e^shift; `denominators` contain the attention sink.
struct LaneSums {
    std::int64_t lanes;         ///< padding lanes hold any numbers
    std::vector<double> values; ///< [dv, lanes]
    std::array<double, kMaxLanes> denominators, squares, shifts;
};

std::vector<QueryLane> queryLanesOf(const WeightedAttentionInput& input, const QueryBlock& queries,
                                    const HeadRows& rows);

/// Sums over unweighted kept sets that a later call updates by the difference of the sets: see KeptSums. The shift of a
/// query is its log-sum-exp over everything, so no sum exceeds the largest value, and multiples of 2^-49 of that (the
/// quantum) add without rounding. The processor's rounding mode rounds a term p v down to a multiple while it is added;
/// when the term is removed, -p v is rounded up, to the same multiple. At the end half a quantum per term is added,
/// so the error of a sum over n tokens is about sqrt(n) / 3 quanta, and at most n / 2.
class KeptSumsPass {
public:
    /// Whether the input asks for sums and its sets have no weights, ascend and fit into memory.
    static bool fits(const WeightedAttentionInput& input);
    KeptSumsPass(const Kernels& kernels, const WeightedAttentionInput& input, const Workers& workers);

    /// False where a value is not finite: there is no quantum then.
    bool runs() const { return m_sums != nullptr; }
    /// Logits that will be computed.
    double work() const;
    /// Computes some blocks of one KV head and kept set. Every block is to be computed once; threads may compute other
    /// blocks. A block has no result where quanta could show in floats: if the kept tokens have little of a query's
    /// attention, or if one value of the head is so much larger than a query's sum that the quantum is not small.
    std::vector<std::optional<LaneSums>> compute(std::span<const QueryBlock> queries, const HeadCache& cache,
                                                 Progress& progress) const;
    /// Stores the sums for later calls.
    void remember() const;

private:
    struct Difference {
        std::vector<TokenIndex> added, removed;
    };

    struct Block;

    Block blockOf(const QueryBlock& queries) const;
    void add(std::span<Block> blocks, const HeadCache& cache, const KeyTerms& terms, double sign,
             Progress& progress) const;
    void addTile(Block& block, const KeyTerms& terms, std::int64_t begin, std::int64_t end, const double* keys,
                 const double* values, double sign) const;
    std::optional<LaneSums> sumsOf(const Block& block) const;
    double* blockSums(const QueryBlock& queries) const;

    const Kernels& m_kernels;
    const WeightedAttentionInput& m_input;
    std::shared_ptr<const KeptSums> m_before; ///< null: the sums start from nothing
    std::shared_ptr<KeptSums> m_sums;         ///< sums: an anchor for each KV head, then [dv + 5, 32] for each block
    std::vector<Difference> m_differences;    ///< for each set
};

} // namespace kvscope::cpu
