#pragma once

#include "views/clustering/clustering_data.h"
#include "views/common/view_facts.h"

#include <optional>
#include <string>
#include <vector>

namespace kvscope {

/// SubGen's state after it has read some tokens of the stream.
struct StreamState {
    TokenIndex read = 0;
    std::size_t clusters = 0;         ///< opened so far
    std::vector<std::int64_t> counts; ///< [clusters] n_c
    std::vector<double> radii;        ///< [clusters] largest distance of a member to its representative
    std::vector<std::vector<TokenIndex>> clusterSlots; ///< [clusters][t]
    std::vector<TokenIndex> valueSlots;                ///< [s]; -1: empty
    double mu = 0;                                     ///< sum of the squared value norms
};
/// `cursor` empty: after the whole stream.
StreamState streamState(const SubgenLog::Head& stream, std::optional<TokenIndex> cursor);

/// Slope of ln m against ln j over the second half of the stream: 0 when no more clusters open, 1 when each token opens
/// one. NaN for short streams.
double growthExponent(const SubgenLog::Head& stream);

/// Births of clusters are milestones; in streams of up to 4,096 tokens every token is an event.
StepSequence streamStepSequence(const SubgenLog::Head& stream);
/// Describes what the last read token did, with numbers.
std::string streamCaption(const ViewInput& input, const SubgenLog::Head& stream);

/// Realised against ideal sampling of the value reservoir: tokens in bins of about equal expected count.
struct SamplingBin {
    double ideal = 0;          ///< chance that a slot holds one of the bin's tokens
    std::int64_t realised = 0; ///< slots that do
    std::int64_t tokens = 0;
    double leastProbability = 0, mostProbability = 0; ///< of one token
};
struct Sampling {
    std::vector<SamplingBin> bins; ///< from rare to likely tokens
    std::int64_t drawn = 0;        ///< slots that hold a token
    double chiSquare = 0;          ///< over the bins; bins - 1 degrees of freedom
    std::int64_t degrees() const { return bins.empty() ? 0 : static_cast<std::int64_t>(bins.size()) - 1; }
};
Sampling samplingOf(const SubgenLog::Head& stream, const StreamState& state);

} // namespace kvscope
