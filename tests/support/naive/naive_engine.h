#pragma once

#include "core/engine/engine.h"
#include "core/engine/score_arithmetic.h"

#include <cstdint>
#include <vector>

/// The primitives as their formulas say, one number at a time in double. Nothing here is shared with an engine but the
/// names of the parameters; nothing here is fast.
namespace kvscope::naive {

using Numbers = std::vector<double>;

/// Float numbers [heads, rows, width].
struct Block {
    std::int64_t heads = 0, rows = 0, width = 0;
    std::vector<float> numbers;
    StoredType stored = StoredType::Float32; ///< a type that holds the numbers

    double at(std::int64_t h, std::int64_t r, std::int64_t c) const {
        return double{numbers[static_cast<std::size_t>((h * rows + r) * width + c)]};
    }
};

Numbers rowNorms(const Block& keys);
Numbers anchor(const Block& keys, AnchorKind kind);
/// anchors [heads, 1, d].
Numbers similarity(const Block& keys, const Block& anchors, SimilarityMetric metric);
Numbers pairwiseSums(const Block& keys, SimilarityMetric metric);

struct Attention {
    Block queries, keys;
    std::int64_t firstQuery = 0;
    RowPositions keyPositions;
    AttentionRule rule;
};
Numbers attentionColumnSums(const Attention& input);

Numbers pool(const Block& scores, PoolKind kind, std::int64_t width);
Numbers reduceGroups(const Block& scores, const std::vector<std::int32_t>& gqaGroupOf, std::int64_t kvHeads,
                     GroupRule rule);

struct Choice {
    std::vector<TokenIndex> kept;
    double margin;
};
Choice topK(const Block& scores, std::int64_t head, std::int64_t count, std::int64_t first, std::int64_t last);

struct Weighted {
    Block queries, keys, values;
    std::int64_t firstQuery = 0, cut = 0;
    AttentionRule rule;
    std::vector<WeightedSet> kept; ///< per KV head; more of them: per query head
    Block reference = {};          ///< [Hq, w, dv]; empty: none
};
/// [Hq, w, dv] outputs or [Hq, w] distances to the reference relative to its norm, then [Hq, w] logs of the
/// denominators, then [Hq, w] logs of the numerator's Euclidean norm.
Numbers weightedAttention(const Weighted& input);

/// [rows' heads, d] descending, of the chosen rows (empty: all); by one-sided Jacobi rotations of the rows themselves.
Numbers singularValues(const Block& rows, const RowPositions& chosen);
/// [heads, count]: the largest singular value of rows [0, first + r + 1).
Numbers prefixOperatorNorms(const Block& rows, std::int64_t first, std::int64_t count);

struct LeverageCase {
    Block rows, sketch = {}; ///< sketch [heads or 1, d, k]; empty: none
    bool centred = false;
    std::int64_t chunk = 0;
    Regulariser regulariser = Regulariser::None;
    double strength = 0;
};
/// [heads, n], by one-sided Jacobi rotations of the rows themselves; directions below 1e-13 of the largest are
/// rounding.
Numbers leverage(const LeverageCase& input);

struct ChunksCase {
    Block queries, keys;
    AttentionRule rule;
    std::int64_t chunk = 1, zeroKeys = 0, uniformRows = 0;
};
Numbers attentionChunkSums(const ChunksCase& input);
/// scores [heads, 1, n].
Numbers standardise(const Block& scores, const Standardisation& how);

struct Map {
    Block queries, keys;
    AttentionMapInput input; ///< its tensors and rowLogSumExps are left alone
};
/// [height, width] cells, -1 where nothing is seen; then [width] column sums; then [heads, w] row log sums, 0 unknown.
Numbers attentionMap(const Map& map);

struct Balancing {
    Block keys, values, centres; ///< centres [heads, 1, d] or no rows; values may have no width
};
struct Balanced {
    Numbers signs, products, diagonal;
    std::int64_t failedAt = -1;
};
/// M [m, m] of the walk's rows.
Numbers balancingKernel(const Balancing& input, const BalancingWalk& walk);
Balanced balancingWalk(const Balancing& input, const BalancingWalk& walk);
Numbers blockMeanProducts(const Block& keys, std::int64_t block);

/// Mean [d], axes [components, d], shares [components], total variance; by cyclic Jacobi rotations.
Numbers principalAxes(const Block& keys, std::int64_t head, int components);

} // namespace kvscope::naive
