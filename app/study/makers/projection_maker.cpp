// Computes the principal axes once per head and projects every token, or embeds the tokens by t-SNE; all panes share
// the projection and differ in their kept lists. An embedding is cached with the capture, because it takes seconds.
#include "app/study/makers/view_data_maker.h"

#include "app/study/makers/balance_panes.h"
#include "core/base/error.h"
#include "core/engine/clusters.h"
#include "core/engine/engine.h"
#include "core/run/stage_cache.h"
#include "views/key_projection/projection_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cstddef>

namespace kvscope {

namespace {

constexpr int kProjectionComponents = 5;

/// [w, components] -> [components]
HostTensor columnMeans(const HostTensor& rows) {
    const std::int64_t count = rows.shape[0], columns = rows.shape[1];
    HostTensor mean = HostTensor::filled({columns});
    for (std::int64_t column = 0; column < columns; ++column) {
        double sum = 0;
        for (std::int64_t row = 0; row < count; ++row) sum += static_cast<double>(rows.data[row * columns + column]);
        mean.data[column] = static_cast<float>(sum / static_cast<double>(count));
    }
    return mean;
}

/// The tensor and the head that the source option names.
struct Source {
    TensorRole role = TensorRole::Keys;
    std::int64_t head = 0;
};

Source sourceOf(const ViewDataRequest& request) {
    const std::string& name = request.options.choice("source");
    if (name == "queries") return {TensorRole::Queries, request.queryHead.value};
    const TensorRole role = name == "keys_pre_rope" ? TensorRole::KeysPreRope
                            : name == "values"      ? TensorRole::Values
                                                    : TensorRole::Keys;
    return {role, request.kvHead.value};
}

/// A token is placed by its query, but captures may hold only the last tokens' queries.
void checkQueries(const ViewDataRequest& request) {
    const CaptureInfo& info = request.capture->info();
    const std::int64_t captured = info.layerInfo(request.layer).queryCount;
    if (captured < info.numTokens)
        throw Error({"the queries of " + std::to_string(captured) + " of " + std::to_string(info.numTokens) +
                         " tokens were captured",
                     "layer " + std::to_string(request.layer.value),
                     "Show keys or values, or capture the queries of all tokens", info.path});
}

constexpr int kSnapshotEvery = 50; // iterations

/// Cache key of results from one head's rows, shared by other colours and methods.
std::string placeOf(const ViewDataWork& work, std::int64_t head) {
    return fmt::format("{}projection|{}|{}|{}", work.runner.keyOf(work.request.capture), work.request.layer.value,
                       work.request.options.choice("source"), head);
}

TsneRequest tsneRequest(const ParameterValues& options) {
    return {.perplexity = options.real("perplexity"),
            .iterations = static_cast<int>(options.integer("iterations")),
            .seed = static_cast<std::uint64_t>(options.integer("tsne_seed")),
            .snapshotEvery = kSnapshotEvery};
}

std::shared_ptr<ProjectionData> withEmbedding(const ProjectionData& plain, const TsneRequest& request,
                                              const Embedding& embedding) {
    auto data = std::make_shared<ProjectionData>(plain);
    data->keys = embedding.points;
    data->tsne = {request, embedding.iteration, embedding.divergence, embedding.neighboursKept, embedding.repulsion};
    return data;
}

/// Affinities and embedding are cached separately: another seed reuses the affinities of the same perplexity.
ViewDataMaker::Value embed(const ViewDataWork& work, const Tensor& rows, std::int64_t head, const ProjectionData& plain,
                           const Checkpoint& checkpoint) {
    const TsneRequest asked = tsneRequest(work.request.options);
    const TsneWorkers workers{work.runner.engine().state().threads, {}};
    const std::string place = fmt::format("{}|tsne {}", placeOf(work, head), asked.perplexity);
    const auto affinities = work.runner.cache().get<TsneAffinities>(place, checkpoint, [&] {
        TsneAffinities made = tsneAffinities(downloadHead(work.runner.engine(), rows, head), asked.perplexity, workers,
                                             checkpoint.part(0, 0.1));
        const std::size_t bytes =
            made.affinity.size() * (sizeof(double) + sizeof(std::int32_t)) + made.nearest.size() * sizeof(std::int32_t);
        return StageCache::Made<TsneAffinities>{std::move(made), bytes};
    });
    const std::string key = fmt::format("{}|{}|{}", place, asked.iterations, asked.seed);
    const auto embedding = work.runner.cache().get<Embedding>(key, checkpoint, [&] {
        Embedding made = tsne(*affinities, asked, workers, checkpoint.part(0.1, 1),
                              [&](const Embedding& onItsWay) { work.partial(withEmbedding(plain, asked, onItsWay)); });
        const std::size_t bytes = made.points.data.size() * sizeof(float);
        return StageCache::Made<Embedding>{std::move(made), bytes};
    });
    return withEmbedding(plain, asked, *embedding);
}

bool asksForCentres(const ViewDataRequest& request) { return request.options.choice("colour_by") == "cluster"; }

/// SubGen Fig. 1 marks 16 greedy centres among keys and values.
std::shared_ptr<const GreedyCenters> centresOf(const ViewDataWork& work, const Tensor& rows, std::int64_t head,
                                               const Checkpoint& checkpoint) {
    const std::int64_t wanted = std::min(rows.size(1), work.request.options.integer("centres"));
    return work.runner.cache().get<GreedyCenters>(
        fmt::format("{}|centres {}", placeOf(work, head), wanted), checkpoint, [&] {
            const Engine& engine = work.runner.engine();
            HostTensor one = downloadHead(engine, rows, head);
            one.shape = {1, one.shape[0], one.shape[1]};
            CentersRequest centres;
            centres.count = wanted;
            centres.first = {0};
            centres.compareAll = true;
            GreedyCenters made = engine.greedyCenters(engine.upload(std::move(one)), centres, checkpoint).front();
            const std::size_t bytes =
                made.distances.size() * sizeof(double) + 2 * made.centre.size() * sizeof(std::int32_t);
            return StageCache::Made<GreedyCenters>{std::move(made), bytes};
        });
}

void addQueries(const ViewDataWork& work, TensorRole role, ProjectionData& data, const Checkpoint& checkpoint) {
    const LayerInfo& layer = work.request.capture->info().layerInfo(work.request.layer);
    const bool preRope = role == TensorRole::KeysPreRope, ofKeys = preRope || role == TensorRole::Keys;
    if (!ofKeys || layer.queryCount == 0 || (preRope && !layer.hasQueriesPreRope)) return;
    const Tensor queries = work.tensor(preRope ? TensorRole::QueriesPreRope : TensorRole::Queries, checkpoint);
    data.queries = work.runner.engine().project(queries, work.request.queryHead.value, data.axes);
    data.queryMean = columnMeans(data.queries);
}

std::size_t bytesOf(const ProjectionData& data) {
    return (data.axes.axes.data.size() + data.keys.data.size() + data.queries.data.size()) * sizeof(float);
}

/// Principal axes with keys and queries projected on them.
ProjectionData onPrincipalAxes(const ViewDataWork& work, const Tensor& rows, const Source& source,
                               const Checkpoint& checkpoint) {
    const std::string key = fmt::format("{}|plane {}", placeOf(work, source.head), work.request.queryHead.value);
    return *work.runner.cache().get<ProjectionData>(key, checkpoint, [&] {
        const Engine& engine = work.runner.engine();
        const int components = std::min<int>(kProjectionComponents, static_cast<int>(rows.size(2)));
        ProjectionData plane;
        plane.axes = engine.principalAxes(rows, source.head, components, checkpoint);
        plane.keys = engine.project(rows, source.head, plane.axes);
        addQueries(work, source.role, plane, checkpoint.silent());
        const std::size_t bytes = bytesOf(plane);
        return StageCache::Made<ProjectionData>{std::move(plane), bytes};
    });
}

/// The number of greedy centres, where the colour needs them: each costs a pass over the keys.
std::string detail(const ViewDataRequest& request) {
    return asksForCentres(request) ? fmt::format("{} centres", request.options.integer("centres")) : std::string();
}

ViewDataMaker::Value make(const ViewDataWork& work) {
    assert(work.request.queryHead.value < work.request.capture->info().numQueryHeads);
    const Engine& engine = work.runner.engine();
    const Source source = sourceOf(work.request);
    if (source.role == TensorRole::Queries) checkQueries(work.request);
    const Tensor rows = work.tensor(source.role, work.checkpoint.silent());
    const bool unfold = work.request.options.choice("method") == "tsne";
    std::shared_ptr<const GreedyCenters> centres;
    const double share = !asksForCentres(work.request) ? 0 : unfold ? 0.05 : 0.5; // of the time, about
    const Checkpoint rest = work.checkpoint.part(share, 1);
    if (share > 0) centres = centresOf(work, rows, source.head, work.checkpoint.part(0, share));
    ProjectionData data = unfold ? ProjectionData{} : onPrincipalAxes(work, rows, source, rest);
    data.source = work.request.options.choice("source");
    const HostTensor norms = engine.rowNorms(rows, work.checkpoint.silent());
    const auto first = norms.data.begin() + source.head * norms.shape[1];
    data.norms.assign(first, first + norms.shape[1]);
    if (centres) {
        data.centres = centres->order;
        data.cluster = centres->centre;
        data.radius = centres->radius.back();
    }
    if (unfold) return embed(work, rows, source.head, data, rest);
    return std::make_shared<const ProjectionData>(std::move(data));
}

} // namespace

ViewDataMaker projectionMaker() {
    using enum DataScope;
    return {"projection", {Layer, KvHead, QueryHead}, make, detail};
}

} // namespace kvscope
