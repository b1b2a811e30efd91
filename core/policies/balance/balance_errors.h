#pragma once

#include "core/base/checkpoint.h"
#include "core/engine/attention.h"
#include "core/policies/balance/balance_tree.h"

#include <span>
#include <vector>

namespace kvscope {

/// The logits of one query with its KV head's keys, and that head's values.
struct QuerySight {
    std::vector<double> logits; ///< [n] of the query with each key
    HostTensor values;          ///< [n, dv]
};

/// Logits of a query [d] with the keys [n, d] of its KV head.
std::vector<double> queryLogits(std::span<const float> query, const HostTensor& keys, const AttentionRule& rule);

/// Relative error that one halving adds to the node's sum for the query: || sum eta_i e^(l_i) v_i || / || sum e^(l_i)
/// v_i || over the node's input, with v_i = 1 in the denominator's tree. 0 where the sum is 0.
double halvingDiscrepancy(const BalanceNode& node, bool numerator, const QuerySight& sight);

/// Errors of the estimator from the samples stored at a cursor, against all rows before the cursor.
struct StreamErrors {
    double numerator = 0;   ///< ||num^ - num|| / (||e||_2 ||V||_F)
    double denominator = 0; ///< |den^ - den| / den
    double output = 0;      ///< ||z - a|| / ||a||
    double epsilon = 0;     ///< ||z - a|| / (||p||_2 ||V||_F), what Theorem 3.1 bounds
};
/// One StreamErrors per cursor; cursors ascend from 1.
std::vector<StreamErrors> streamErrors(const BalanceStream& stream, std::int64_t kvHead,
                                       std::span<const TokenIndex> cursors, const QuerySight& sight,
                                       const Checkpoint& checkpoint = {});

} // namespace kvscope
