// Fits the principal axes once per head and puts every token on them, so that all panes share one picture of the keys
// and differ only in what they keep.
#include "app/view_data/projection_data.h"

#include "core/base/error.h"
#include "views/key_projection/projection_data.h"

#include <algorithm>
#include <cassert>

namespace kvscope {

namespace {

constexpr int kProjectionComponents = 5;

/// [w, components] -> [components]
HostTensor columnMeans(const HostTensor& rows) {
    const std::int64_t count = rows.shape[0], columns = rows.shape[1];
    HostTensor mean{{columns}, std::vector<float>(static_cast<std::size_t>(columns))};
    for (std::int64_t column = 0; column < columns; ++column) {
        double sum = 0;
        for (std::int64_t row = 0; row < count; ++row)
            sum += static_cast<double>(rows.data[static_cast<std::size_t>(row * columns + column)]);
        mean.data[static_cast<std::size_t>(column)] = static_cast<float>(sum / static_cast<double>(count));
    }
    return mean;
}

/// What the source option names, and which of its heads.
struct Source {
    TensorRole role = TensorRole::Keys;
    std::int64_t head = 0;
};

Source sourceOf(const ViewDataRequest& request) {
    const std::string& name = request.options.choice("source");
    if (name == "queries")
        return {TensorRole::Queries, request.queryHead.value};
    const TensorRole role = name == "keys_pre_rope" ? TensorRole::KeysPreRope : name == "values" ? TensorRole::Values : TensorRole::Keys;
    return {role, request.kvHead.value};
}

/// A token's place needs its query: captures may hold those of the last tokens alone.
void checkQueries(const ViewDataRequest& request) {
    const CaptureInfo& info = request.capture->info();
    const std::int64_t captured = info.layerInfo(request.layer).queryCount;
    if (captured < info.numTokens)
        throw Error({.sentence = "the queries of " + std::to_string(captured) + " of " + std::to_string(info.numTokens) + " tokens were captured",
                     .place = "layer " + std::to_string(request.layer.value),
                     .remedy = "Show keys or values, or capture the queries of all tokens",
                     .path = info.path});
}

} // namespace

ViewDataMaker::Value makeProjectionData(const LayerRunner& runner, const ViewDataRequest& request,
                                        const Checkpoint& checkpoint, const ViewDataMaker::Partial&) {
    assert(request.queryHead.value < request.capture->info().numQueryHeads);
    const Engine& engine = runner.engine();
    const auto [role, head] = sourceOf(request);
    if (role == TensorRole::Queries)
        checkQueries(request);
    const Tensor rows = runner.tensor(request.capture, request.layer, role, checkpoint);
    auto data = std::make_shared<ProjectionData>();
    data->source = request.options.choice("source");
    const int components = std::min<int>(kProjectionComponents, static_cast<int>(rows.size(2)));
    data->axes = engine.principalAxes(rows, head, components, checkpoint);
    data->keys = engine.project(rows, head, data->axes);
    const HostTensor norms = engine.download(engine.rowNorms(rows, checkpoint.silent()));
    const auto first = norms.data.begin() + head * norms.shape[1];
    data->norms.assign(first, first + norms.shape[1]);

    const LayerInfo& layer = request.capture->info().layerInfo(request.layer);
    const bool preRope = role == TensorRole::KeysPreRope, ofKeys = preRope || role == TensorRole::Keys;
    const bool hasQueries = ofKeys && layer.queryCount > 0 && (!preRope || layer.hasQueriesPreRope);
    if (!hasQueries)
        return data;
    const Tensor queries = runner.tensor(request.capture, request.layer,
                                         preRope ? TensorRole::QueriesPreRope : TensorRole::Queries, checkpoint);
    data->queries = engine.project(queries, request.queryHead.value, data->axes);
    data->firstQuery = static_cast<TokenIndex>(request.capture->info().numTokens - queries.size(1));
    data->queryMean = columnMeans(data->queries);
    return data;
}

} // namespace kvscope
