// What a run reads of its layer. Policies that score by a window of queries, and all measures, need few queries, while
// all queries are several times as large as the keys.
#include "core/run/layer_reads.h"

#include "core/policies/policy_needs.h"

#include <algorithm>

namespace kvscope {

namespace {

constexpr std::int64_t kSeenQueries = 256; // used with cut "none", as many as in BalanceKV B.1

/// The queries of the tokens [first, last), as far as they were captured.
QueryRows queriesOfTokens(const RunRequest& request, std::int64_t first, std::int64_t last) {
    const CaptureInfo& info = request.capture->info();
    const std::int64_t firstCaptured = info.numTokens - info.layerInfo(request.layer).queryCount;
    const std::int64_t begin = std::max(first, firstCaptured);
    return {begin - firstCaptured, last - firstCaptured, static_cast<TokenIndex>(begin), last - first};
}

} // namespace

std::int64_t rowsOf(TensorRole role, const CaptureInfo& capture, const LayerInfo& layer) {
    return role == TensorRole::Queries ? layer.queryCount : capture.numTokens;
}

QueryRows policyQueries(const RunRequest& request) {
    const std::int64_t end = request.cut.token;
    return queriesOfTokens(request, end - std::min(end, queriesRead(request.policy)), end);
}

QueryRows evaluationQueries(const RunRequest& request) {
    const std::int64_t tokens = request.capture->info().numTokens;
    return queriesOfTokens(
        request, request.cut.evaluatedOnSeen ? std::max<std::int64_t>(0, tokens - kSeenQueries) : request.cut.token,
        tokens);
}

LayerRead readOf(const QueryRows& queries, const LayerInfo& layer) {
    const bool part = 2 * queries.count() < layer.queryCount && queries.count() <= kMostRowsInMemory;
    return part ? LayerRead{TensorRole::Queries, queries.begin, queries.end}
                : LayerRead{TensorRole::Queries, 0, layer.queryCount};
}

std::string missingInput(const PolicySpec& policy, const CaptureReader& capture, const LayerInfo& layer) {
    if (policyNeeds(policy, Need::Queries) && layer.queryCount == 0) return "queries";
    const bool known = !layer.hasRope || layer.hasKeysPreRope || !capture.inverseFrequencies(layer.layer).empty();
    return policyNeeds(policy, Need::PreRopeKeys) && !known ? "keys before RoPE" : "";
}

std::vector<LayerRead> readsOf(const RunRequest& request) {
    const LayerInfo& layer = request.capture->info().layerInfo(request.layer);
    std::vector<LayerRead> reads;
    const auto add = [&](const LayerRead& read) {
        if (std::ranges::find(reads, read) == reads.end()) reads.push_back(read);
    };
    const auto addAll = [&](TensorRole role, Need need) {
        const bool measured = request.measure && need != Need::PreRopeKeys;
        if (measured || (!request.recorded && policyNeeds(request.policy, need)))
            add({role, 0, rowsOf(role, request.capture->info(), layer)});
    };
    addAll(TensorRole::Keys, Need::Keys);
    addAll(TensorRole::Values, Need::Values);
    addAll(TensorRole::KeysPreRope, Need::PreRopeKeys);
    const auto addQueries = [&](const QueryRows& queries) {
        if (queries.count() > 0) add(readOf(queries, layer));
    };
    if (!request.recorded) addQueries(policyQueries(request)); // a recorded list's policy may be unknown here
    if (request.measure) addQueries(evaluationQueries(request));
    return reads;
}

} // namespace kvscope
