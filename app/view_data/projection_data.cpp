// Fits the principal axes once per head and puts every token on them, so that all panes share one picture of the keys
// and differ only in what they keep.
#include "app/view_data/projection_data.h"

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

} // namespace

ViewDataMaker::Value makeProjectionData(const LayerRunner& runner, const ViewDataRequest& request,
                                        const Checkpoint& checkpoint, const ViewDataMaker::Partial&) {
    const bool preRope = request.options.choice("source") == "keys_pre_rope";
    assert(request.queryHead.value < request.capture->info().numQueryHeads);
    const Engine& engine = runner.engine();
    const Tensor keys = runner.tensor(request.capture, request.layer,
                                      preRope ? TensorRole::KeysPreRope : TensorRole::Keys, checkpoint);
    auto data = std::make_shared<ProjectionData>();
    data->source = request.options.choice("source");
    const int components = std::min<int>(kProjectionComponents, static_cast<int>(keys.size(2)));
    data->axes = engine.principalAxes(keys, request.kvHead.value, components, checkpoint);
    data->keys = engine.project(keys, request.kvHead.value, data->axes);

    const LayerInfo& layer = request.capture->info().layerInfo(request.layer);
    const bool hasQueries = layer.queryCount > 0 && (!preRope || layer.hasQueriesPreRope);
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
