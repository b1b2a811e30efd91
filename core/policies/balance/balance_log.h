#pragma once

#include "core/base/index.h"
#include "core/engine/balancing_walk.h"
#include "core/policies/step_log.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace kvscope {

struct BalanceStream;

/// One balancing walk, token by token. Lists have one entry per token of the walk.
struct BalanceWalkLog {
    std::int64_t kvHead = 0;
    std::int64_t level = 0;   ///< round of the blocked algorithm, level of the node in the streaming one; from 1
    std::int64_t place = 0;   ///< block of the round, or node of the level; from 0
    std::int64_t tree = 0;    ///< streaming: 0 the denominator's tree, 1 a tree of the numerator
    std::int64_t bucket = 0;  ///< streaming: i with 2^(i-1) < ||v|| <= 2^i
    std::int64_t repeats = 0; ///< walks that failed before this one
    BalancingWalk walk;       ///< as the engine ran it: rows, uniforms, kernel
    std::vector<TokenIndex> tokens;
    std::vector<double> products;        ///< y^T eta before the token
    std::vector<double> probabilities;   ///< p = 1/2 - gamma y^T eta, not clipped
    std::vector<std::int8_t> signs;      ///< 0: protected
    std::vector<double> quadratic;       ///< Q_j = ||sum eta phi(k) (x) v||^2 after the token
    std::vector<double> fairCoins;       ///< sum of M_jj up to the token: what Q_j is expected to be under fair coins
    std::vector<std::int64_t> imbalance; ///< sum of the signs so far

    /// sqrt(Q_m): bounds the difference between the two groups' sums for every query with ||phi(q)|| = 1.
    double discrepancy() const;
};

/// Tokens of equal weight that survive: after a round, or on a level of a tree.
struct BalanceSetLog {
    std::int64_t kvHead = 0, level = 0, tree = 0, bucket = 0;
    std::vector<TokenIndex> tokens; ///< in the order of the algorithm
    std::vector<double> weights;    ///< in the numerator (streaming: of this tree's sum)
};

struct BalanceLog final : StepLog {
    std::vector<BalanceWalkLog> walks;
    std::vector<BalanceSetLog> sets;
    /// Needle detection, [Hkv][middle tokens], empty without it: rho; raw and dilated are 1 where a token is protected
    /// before and after dilation.
    std::vector<std::vector<double>> rho;
    std::vector<std::vector<char>> raw, dilated;
    HostTensor centres;                          ///< [Hkv, d] subtracted by all walks; empty: see meanOver
    std::shared_ptr<const BalanceStream> stream; ///< the trees with all their sets; null for the blocked form

    std::string json() const override;
};

} // namespace kvscope
