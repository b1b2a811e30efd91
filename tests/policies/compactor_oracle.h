#pragma once

#include "tests/policies/policy_bench.h"
#include "tests/support/naive/naive_engine.h"

#include <cstdint>
#include <vector>

/// Compactor as plain loops: what the paper's formulas and the two public codes make of a layer.
namespace kvscope::oracle {

/// Rows [begin, end) of all heads.
naive::Block blockOf(const HostTensor& tensor, std::int64_t begin, std::int64_t end);

/// [Hkv][n] the score: z(attention) + lambda z(leverage); the sketch is drawn from the layer's seed where the values
/// ask for one.
std::vector<naive::Numbers> compactorScores(const TestLayer& layer, const ParameterValues& values, double lambda);

/// Protected tokens, then the best others one at a time; of equal scores the earlier token.
std::vector<TokenIndex> chosenBy(const naive::Numbers& scores, const ParameterValues& values, std::int64_t count);

/// compactor-vllm's choice over all heads (C9): round(retention (n - first - last) H) entries, protected ones first, of
/// equal scores the earlier token, then the earlier head; every head is then filled up to whole pages.
std::vector<std::vector<TokenIndex>> chosenJointly(const std::vector<naive::Numbers>& scores,
                                                   const ParameterValues& values, double retention);

} // namespace kvscope::oracle
