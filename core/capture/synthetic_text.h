#pragma once

#include "core/capture/synthetic_spec.h"

#include <cstdint>

namespace kvscope {

constexpr std::int64_t kSentenceTokens = 12; ///< a sentence keeps to one cluster

/// Where the parts of a synthetic prompt lie, half-open token ranges.
struct SyntheticPlan {
    std::int64_t contextEnd = 0;
    std::int64_t needleBegin = 0, needleEnd = 0;
    std::int64_t questionEnd = 0, answerEnd = 0; ///< the question begins at contextEnd; both end there without a needle
};

SyntheticPlan planOf(const SyntheticSpec& spec);
std::int64_t fewestTokens(const SyntheticSpec& spec); ///< fewest that hold sinks, needle, question and answer

/// Throws Error naming the field that contradicts another or lies out of range.
void checkSpec(const SyntheticSpec& spec);

/// Cluster of a token: one for each sentence, drawn from the seed; always 0 where there are no clusters.
int clusterOf(const SyntheticSpec& spec, std::int64_t token);

/// The tokens of the prompt with their text.
TokenTable syntheticTokens(const SyntheticSpec& spec);

} // namespace kvscope
