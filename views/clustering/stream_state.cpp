// Replays SubGen's step log up to a token. Representatives never move and a slot holds the last token that it accepted,
// so the log determines every earlier state.
#include "views/clustering/stream_state.h"

#include "views/scene/axes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace kvscope {

namespace {

constexpr std::size_t kMostNamedTokens = 4'096; // longest stream with a caption for every token
constexpr std::int64_t kMostBins = 20;
constexpr double kLeastExpected = 5; // per bin, as chi-square requires

/// The last token of an ascending list before `end`; -1 if there is none.
TokenIndex lastBefore(const std::vector<TokenIndex>& accepted, TokenIndex end) {
    const auto at = std::ranges::lower_bound(accepted, end);
    return at == accepted.begin() ? -1 : *(at - 1);
}

std::int64_t slotsTaken(const std::vector<std::vector<TokenIndex>>& histories, TokenIndex token) {
    return std::ranges::count_if(histories,
                                 [&](const auto& accepted) { return std::ranges::binary_search(accepted, token); });
}

} // namespace

StreamState streamState(const SubgenLog::Head& stream, std::optional<TokenIndex> cursor) {
    StreamState state;
    const auto n = static_cast<TokenIndex>(stream.cluster.size());
    state.read = std::clamp<TokenIndex>(cursor.value_or(n), 0, n);
    state.clusters = static_cast<std::size_t>(std::ranges::lower_bound(stream.representatives, state.read) -
                                              stream.representatives.begin());
    state.counts.assign(state.clusters, 0);
    state.radii.assign(state.clusters, 0);
    for (std::size_t token = 0; token < static_cast<std::size_t>(state.read); ++token) {
        const auto c = static_cast<std::size_t>(stream.cluster[token]);
        ++state.counts[c];
        state.radii[c] = std::max(state.radii[c], stream.distances[token]);
        state.mu += stream.valueProbability[token] * stream.mu;
    }
    for (std::size_t c = 0; c < state.clusters; ++c) {
        state.clusterSlots.emplace_back();
        for (const auto& accepted : stream.clusterHistory[c])
            state.clusterSlots.back().push_back(lastBefore(accepted, state.read));
    }
    for (const auto& accepted : stream.valueHistory) state.valueSlots.push_back(lastBefore(accepted, state.read));
    return state;
}

double growthExponent(const SubgenLog::Head& stream) {
    const std::size_t n = stream.cluster.size(), half = n / 2;
    if (n < 8) return NAN;
    const auto born = [&](std::size_t read) {
        return static_cast<double>(std::ranges::lower_bound(stream.representatives, static_cast<TokenIndex>(read)) -
                                   stream.representatives.begin());
    };
    return std::log(born(n) / born(half)) / std::log(static_cast<double>(n) / static_cast<double>(half));
}

StepSequence streamStepSequence(const SubgenLog::Head& stream) {
    StepSequence sequence;
    sequence.title = "SubGen reads the stream";
    for (const TokenIndex token : stream.representatives)
        sequence.milestones.push_back(token + 1); // tokens read when the cluster has opened
    sequence.events = sequence.milestones;
    if (stream.cluster.size() <= kMostNamedTokens) {
        sequence.events.resize(stream.cluster.size());
        std::iota(sequence.events.begin(), sequence.events.end(), TokenIndex{1});
    }
    return sequence;
}

std::string streamCaption(const ViewInput& input, const SubgenLog::Head& stream) {
    const StreamState state = streamState(stream, input.cursor);
    if (state.read == 0) return "Nothing has been read: no cluster, empty reservoirs.";
    const TokenIndex token = state.read - 1;
    const auto i = static_cast<std::size_t>(token), c = static_cast<std::size_t>(stream.cluster[i]);
    const std::string counted = fmt::format("m = {} after {}. ", formatCount(static_cast<std::int64_t>(state.clusters)),
                                            formatCounted(state.read, "token"));
    const std::int64_t slots = slotsTaken(stream.clusterHistory[c], token);
    const double square = stream.valueProbability[i] * stream.mu;
    const std::string value =
        fmt::format("{} of {} value slots take it (‖v‖²/μ = {})", slotsTaken(stream.valueHistory, token),
                    stream.valueHistory.size(), formatShort(state.mu > 0 ? square / state.mu : 0));
    if (stream.representatives[c] == token)
        return fmt::format("{}Token {} is farther than δ = {} from all {} representatives and opens cluster {}; all {} "
                           "slots hold it. {}.",
                           counted, quotedToken(input, token), formatShort(stream.delta),
                           formatCount(static_cast<std::int64_t>(c)), formatCount(static_cast<std::int64_t>(c) + 1),
                           stream.clusterHistory[c].size(), value);
    return fmt::format(
        "{}Token {} joins the cluster of {}, {} ≤ δ = {} away: n = {}, and {} of {} slots take it (chance 1/{}). {}.",
        counted, quotedToken(input, token), quotedToken(input, stream.representatives[c]),
        formatShort(stream.distances[i]), formatShort(stream.delta), formatCount(state.counts[c]), slots,
        stream.clusterHistory[c].size(), state.counts[c], value);
}

Sampling samplingOf(const SubgenLog::Head& stream, const StreamState& state) {
    Sampling sampling;
    std::vector<std::int64_t> held(static_cast<std::size_t>(state.read), 0);
    for (const TokenIndex token : state.valueSlots)
        if (token >= 0) {
            ++held[token];
            ++sampling.drawn;
        }
    if (sampling.drawn == 0 || state.mu <= 0) return sampling;
    std::vector<std::size_t> order(held.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(
        order, [&](std::size_t a, std::size_t b) { return stream.valueProbability[a] < stream.valueProbability[b]; });
    const auto slots = static_cast<double>(sampling.drawn);
    const double share = std::max(1.0 / kMostBins, kLeastExpected / slots);
    SamplingBin bin;
    double given = 0;
    for (const std::size_t token : order) {
        const double p = stream.valueProbability[token] * stream.mu / state.mu;
        bin.leastProbability = bin.tokens == 0 ? p : bin.leastProbability;
        bin.mostProbability = p;
        bin.ideal += p;
        bin.realised += held[token];
        ++bin.tokens;
        if (bin.ideal < share || 1 - given - bin.ideal < share) // what would be left over goes into the last bin
            continue;
        given += bin.ideal;
        sampling.bins.push_back(bin);
        bin = {};
    }
    sampling.bins.push_back(bin);
    for (const SamplingBin& b : sampling.bins)
        if (b.ideal > 0)
            sampling.chiSquare += std::pow(static_cast<double>(b.realised) - slots * b.ideal, 2) / (slots * b.ideal);
    return sampling;
}

} // namespace kvscope
