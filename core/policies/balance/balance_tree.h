#pragma once

#include "core/policies/balance/balance_walks.h"

#include <vector>

namespace kvscope {

/// One call of SoftmaxBalance: input, signs, and the smaller sign group (ties: +1) as output.
struct BalanceNode {
    std::vector<TokenIndex> input, output; ///< rows
    std::vector<std::int8_t> signs;
};

/// MergeAndReduce over a stream of rows (BalanceKV Algorithm 4) with all its nodes. Nodes do not change when tokens are
/// added, so the sets at any cursor can be read from them.
struct BalanceTree {
    std::int64_t kvHead = 0;
    bool numerator = false; ///< values of one bucket; otherwise the denominator's tree over all keys
    int bucket = 0;         ///< 2^(bucket-1) < ||v|| <= 2^bucket
    std::int64_t batch = 256;
    std::vector<TokenIndex> rows;                ///< ascending
    std::vector<std::vector<BalanceNode>> nodes; ///< [T][]: nodes[i - 1][r] puts its output into C^i, from batches
                                                 ///< [r 2^(i-1), (r + 1) 2^(i-1))

    /// C^0 .. C^T after the rows before `cursor`; a row of C^i has weight 2^i.
    std::vector<std::vector<TokenIndex>> setsAt(TokenIndex cursor) const;
};

enum class StepSize { Theory, Manual, Gain };
enum class EraseLine { Algorithm, Proof, None };

struct StreamSettings {
    std::int64_t batch = 256, levels = 2;
    StepSize steps = StepSize::Theory;
    double c = 4, gamma = 4, delta = 0, radius = 0, epsilon = 0.1;
    bool failOnOverflow = false;
    EraseLine erase = EraseLine::Algorithm;
};

/// The samples of numerator and denominator stored for one KV head at a cursor. Rows ascend in both lists.
struct StreamSample {
    WeightedSet set;
    std::vector<int> erasedBuckets;
    double eraseLine = 0; ///< buckets with 2^i at most this have been dropped
};

/// Streaming BalanceKV over all rows of an input (Algorithm 1).
struct BalanceStream {
    StreamSettings settings;
    std::int64_t tokens = 0;               ///< n
    double radius = 0, decay = 1;          ///< r, e^(-r^2 scaling)
    std::vector<BalanceTree> trees;        ///< all heads; per head the denominator's first, then buckets ascending
    std::vector<std::vector<float>> norms; ///< [Hkv][n] of the values
    std::vector<double> margins;           ///< [Hkv]
    std::int64_t repeats = 0;              ///< walks that failed

    StreamSample sampleAt(std::int64_t kvHead, TokenIndex cursor) const;
    /// The erase line for the largest value norm before the cursor.
    double eraseLineAt(std::int64_t kvHead, TokenIndex cursor) const;
};

/// i with 2^(i-1) < norm <= 2^i, for norm > 0.
int bucketOf(double norm);

BalanceStream buildBalanceStream(const PolicyInput& input, const StreamSettings& settings, BalanceLog* log);

} // namespace kvscope
