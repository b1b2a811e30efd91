// Runs streaming BalanceKV with its step log and evaluates one query at every node of its trees: the discrepancy of the
// two halves, and the error of the stored samples along the stream.
#include "app/study/makers/view_data_maker.h"

#include "app/study/makers/balance_panes.h"
#include "core/engine/engine.h"
#include "core/policies/policy.h"
#include "core/run/attention_rule.h"
#include "views/merge_tree/merge_tree_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace kvscope {

namespace {

constexpr std::array kFamilies = {PolicyFamily::BalanceTree};
constexpr const char* kStandIn = ",batch=64,levels=4"; // of the first policy of the family
constexpr std::int64_t kMostCursors = 256;             // at which errors are computed

void listOctaves(MergeTreeData& data) {
    for (std::size_t i = 0; i < data.stream->trees.size(); ++i) {
        const BalanceTree& tree = data.stream->trees[i];
        if (tree.kvHead == data.kvHead && tree.numerator)
            data.octaves.push_back({tree.bucket, static_cast<std::int64_t>(i)});
    }
}

void chooseTree(MergeTreeData& data, const ParameterValues& options) {
    const std::string& wanted = options.choice("tree");
    const auto sizeOf = [&](const MergeTreeData::Octave& o) { return data.stream->trees[o.tree].rows.size(); };
    if (wanted == "keys") {
        for (std::size_t i = 0; i < data.stream->trees.size() && data.tree < 0; ++i)
            if (data.stream->trees[i].kvHead == data.kvHead && !data.stream->trees[i].numerator)
                data.tree = static_cast<std::int64_t>(i);
        return;
    }
    data.wantedBucket = static_cast<int>(options.integer("octave"));
    if (wanted == "fullest") {
        const auto best =
            std::ranges::max_element(data.octaves, [&](const auto& a, const auto& b) { return sizeOf(a) < sizeOf(b); });
        data.wantedBucket = best == data.octaves.end() ? 0 : best->bucket;
    }
    for (const MergeTreeData::Octave& octave : data.octaves)
        if (octave.bucket == data.wantedBucket) data.tree = octave.tree;
}

/// The row, among the captured queries, of the wanted token or of the last one before the cut; -1: none.
std::int64_t findQuery(MergeTreeData& data, const ViewDataRequest& request, std::int64_t wanted) {
    const LayerInfo& layer = request.capture->info().layerInfo(request.layer);
    const std::int64_t n = request.capture->info().numTokens, first = n - layer.queryCount;
    if (!layer.sinks.empty()) {
        data.whyNoQuery = "the errors of a query are defined without attention sinks, and the layer has them";
        return -1;
    }
    const std::int64_t token = wanted < 0 ? data.stream->tokens - 1 : wanted;
    if (token < first || token >= n) {
        data.whyNoQuery = layer.queryCount == 0 ? "no queries were captured"
                          : token >= n          ? fmt::format("there is no token {}: the prompt has {}", token, n)
                                       : fmt::format("the query of token {} was not captured (the last {} were)", token,
                                                     layer.queryCount);
        return -1;
    }
    data.query = static_cast<TokenIndex>(token);
    return token - first;
}

QuerySight sightOf(const ViewDataWork& work, const MergeTreeData& data, std::int64_t queryRow,
                   const Checkpoint& checkpoint) {
    const ViewDataRequest& request = work.request;
    const Engine& engine = work.runner.engine();
    const auto tensor = [&](TensorRole role) { return work.tensor(role, checkpoint); };
    const auto rows = [&](TensorRole role) { return engine.rows(tensor(role), 0, data.stream->tokens); };
    const LayerInfo& layer = request.capture->info().layerInfo(request.layer);
    const HostTensor keys = downloadHead(engine, rows(TensorRole::Keys), data.kvHead);
    const HostTensor query =
        downloadHead(engine, engine.rows(tensor(TensorRole::Queries), queryRow, queryRow + 1), request.queryHead.value);
    return {queryLogits(query.data, keys, attentionRuleOf(layer)),
            downloadHead(engine, rows(TensorRole::Values), data.kvHead)};
}

/// Reads the repeats and the largest |1 - 2p| of the shown tree's nodes from the step log.
void readWalks(MergeTreeData& data, const BalanceLog& log) {
    const BalanceTree& tree = *data.shown();
    for (const auto& level : tree.nodes) data.nodes.emplace_back(level.size());
    for (const BalanceWalkLog& walk : log.walks) {
        if (walk.kvHead != tree.kvHead || (walk.tree == 1) != tree.numerator || walk.bucket != tree.bucket) continue;
        MergeTreeData::Node& node = data.nodes[walk.level - 1][walk.place];
        node.repeats = walk.repeats;
        for (const double p : walk.probabilities) node.largest = std::max(node.largest, std::abs(1 - 2 * p));
    }
}

void askQuery(MergeTreeData& data, const QuerySight& sight, const Checkpoint& checkpoint) {
    if (const BalanceTree* tree = data.shown())
        for (std::size_t level = 0; level < tree->nodes.size(); ++level)
            for (std::size_t place = 0; place < tree->nodes[level].size(); ++place)
                data.nodes[level][place].discrepancy =
                    halvingDiscrepancy(tree->nodes[level][place], tree->numerator, sight);
    const std::int64_t n = data.stream->tokens, batch = data.stream->settings.batch;
    const std::int64_t stride = batch * std::max<std::int64_t>(1, (n / batch + kMostCursors - 1) / kMostCursors);
    std::vector<TokenIndex> cursors;
    for (std::int64_t cursor = stride; cursor < n + stride; cursor += stride)
        cursors.push_back(static_cast<TokenIndex>(std::min(cursor, n)));
    const std::vector<StreamErrors> errors = streamErrors(*data.stream, data.kvHead, cursors, sight, checkpoint);
    for (std::size_t i = 0; i < cursors.size(); ++i) data.errors.push_back({cursors[i], errors[i]});
}

ViewDataMaker::Value make(const ViewDataWork& work) {
    const ViewDataRequest& request = work.request;
    const ShownRun shown = shownRun(request, kFamilies, firstOf(kFamilies.front()) + kStandIn);
    const auto result = work.runner.run(shown.run, work.checkpoint.part(0, 0.5));
    const auto log = std::dynamic_pointer_cast<const BalanceLog>(result->log);
    auto data = std::make_shared<MergeTreeData>();
    data->policy = shown.run.policy.policy;
    data->source = shown.source;
    data->standIn = shown.standIn;
    data->stream = log->stream;
    data->kvHead = request.kvHead.value;
    listOctaves(*data);
    chooseTree(*data, request.options);
    if (data->tree >= 0) readWalks(*data, *log);
    const std::int64_t query = findQuery(*data, request, request.options.integer("query"));
    if (query < 0) return data;
    work.deliver(*data);
    const QuerySight sight = sightOf(work, *data, query, work.checkpoint.part(0.5, 0.6));
    askQuery(*data, sight, work.checkpoint.part(0.6, 1));
    return data;
}

} // namespace

ViewDataMaker mergeTreeMaker() {
    using enum DataScope;
    return {"merge_tree", {Layer, KvHead, QueryHead, Cut, Policies, ActivePolicy, Seed}, make};
}

} // namespace kvscope
