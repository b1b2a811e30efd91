#pragma once

#include "core/base/checkpoint.h"
#include "core/engine/attention.h"
#include "core/policies/balance/balance_tree.h"

#include <span>
#include <vector>

namespace kvscope {

/// What one query makes of the rows of its KV head.
struct QuerySight {
    std::vector<double> logits; ///< [n] of the query with each key
    HostTensor values;          ///< [n, dv]
};

/// Logits of a query [d] with the keys [n, d] of its KV head.
std::vector<double> queryLogits(std::span<const float> query, const HostTensor& keys, const AttentionRule& rule);

/// How far the two groups of a halving disagree for the query: || sum eta_i e^(l_i) v_i || / || sum e^(l_i) v_i || over
/// the node's input, with v_i = 1 in the denominator's tree. It is the relative error that this one halving adds to the
/// node's own sum. 0 where the sum is 0.
double halvingDiscrepancy(const BalanceNode& node, bool numerator, const QuerySight& sight);

/// How well what is stored at a cursor answers the query, against all rows before the cursor.
struct StreamErrors {
    double numerator = 0;   ///< ||num^ - num|| / (||e||_2 ||V||_F)
    double denominator = 0; ///< |den^ - den| / den
    double output = 0;      ///< ||z - a|| / ||a||
    double epsilon = 0;     ///< ||z - a|| / (||p||_2 ||V||_F), what Theorem 3.1 bounds
};
/// One for each of these cursors, which ascend from 1.
std::vector<StreamErrors> streamErrors(const BalanceStream& stream, std::int64_t kvHead,
                                       std::span<const TokenIndex> cursors, const QuerySight& sight,
                                       const Checkpoint& checkpoint = {});

} // namespace kvscope
