#pragma once

#include "tests/policies/policy_bench.h"

#include <vector>

namespace naive_policies {

struct BalancedHead {
    std::vector<kvscope::TokenIndex> kept; ///< ascending
    std::vector<float> numerator, denominator;
};

/// Blocked BalanceKV with explicit rounds as the paper and the authors' code describe it: tensors laid out in padded
/// blocks, one number at a time. Detection in another layer sees the same keys.
std::vector<BalancedHead> balanceRounds(const kvscope::ParameterValues& values, const kvscope::TestLayer& layer);

} // namespace naive_policies
