// Turns the options of the attention map into engine calls: rows, keys and heads to compute, and whether a sampled
// picture comes first. The lse of computed rows is cached for the next part.
#include "app/study/makers/view_data_maker.h"

#include "app/study/makers/balance_panes.h"
#include "app/study/makers/row_log_sum_exps.h"
#include "core/base/error.h"
#include "core/engine/engine.h"
#include "core/parameters/parameters.h"
#include "core/run/attention_rule.h"
#include "core/run/stage_cache.h"
#include "views/attention_map/attention_map_data.h"
#include "views/attention_map/map_cell.h"
#include "views/attention_map/map_colours.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>

namespace kvscope {

ViewDataMaker attentionMapMaker();

namespace {

constexpr std::int64_t kMostAcross = 512; // pixels along a side of the rectangles searched for the largest cell

using Draw = std::function<AttentionMap(const AttentionMapInput&)>;

/// The cache entry of the map that `input` describes: its heads, mask and chunk of one layer.
std::shared_ptr<RowLogSumExps> rowLogSumExpsOf(const LayerRunner& runner,
                                               const std::shared_ptr<const CaptureReader>& capture, LayerIndex layer,
                                               const AttentionMapInput& input, const Checkpoint& checkpoint) {
    const std::string key =
        fmt::format("{}row sums|{}|{}|{}|{}", runner.keyOf(capture), layer.value, static_cast<int>(input.mask),
                    input.mask == MapMask::Chunks ? input.chunk : 0, fmt::join(input.queryHeads, ","));
    const auto heads = static_cast<std::int64_t>(input.queryHeads.size()), rows = input.queries.size(1);
    return *runner.cache().get<std::shared_ptr<RowLogSumExps>>(key, checkpoint, [&] {
        return StageCache::Made<std::shared_ptr<RowLogSumExps>>{std::make_shared<RowLogSumExps>(heads, rows),
                                                                static_cast<std::size_t>(heads * rows) * sizeof(float)};
    });
}

/// A rectangle of the map, one pixel per cell where it is not wider than `most`.
AttentionMapInput part(const AttentionMapInput& map, std::int64_t rowBegin, std::int64_t rowEnd, std::int64_t keyBegin,
                       std::int64_t keyEnd, std::int64_t most) {
    AttentionMapInput input = map;
    input.rowBegin = rowBegin;
    input.rowEnd = rowEnd;
    input.keyBegin = keyBegin;
    input.keyEnd = keyEnd;
    input.height = std::min(most, rowEnd - rowBegin);
    input.width = std::min(most, keyEnd - keyBegin);
    input.rowsPerPixel = 0;
    return input;
}

/// Index of the largest cell; the first one where all are masked.
std::int64_t largest(const HostTensor& cells, bool isDifference) {
    std::int64_t best = 0;
    for (std::int64_t i = 1; i < std::ssize(cells.data); ++i) {
        const float cell = cells.data[i], top = cells.data[best];
        if (std::isnan(top) ? !std::isnan(cell) : isDifference ? std::abs(cell) > std::abs(top) : cell > top) best = i;
    }
    return best;
}

void goToLargest(const AttentionMapInput& map, MapCell& cell, bool isDifference, const Draw& draw) {
    while (cell.firstQuery < cell.lastQuery || cell.firstKey < cell.lastKey) {
        const std::int64_t rows = cell.lastQuery - cell.firstQuery + 1, keys = cell.lastKey - cell.firstKey + 1;
        const AttentionMap drawn =
            draw(part(map, cell.firstQuery, cell.firstQuery + rows, cell.firstKey, cell.firstKey + keys, kMostAcross));
        const std::int64_t height = drawn.cells.shape[0], width = drawn.cells.shape[1];
        const std::int64_t at = largest(drawn.cells, isDifference), y = at / width, x = at % width;
        cell = {static_cast<TokenIndex>(cell.firstQuery + rows * y / height),
                static_cast<TokenIndex>(cell.firstQuery + rows * (y + 1) / height - 1),
                static_cast<TokenIndex>(cell.firstKey + keys * x / width),
                static_cast<TokenIndex>(cell.firstKey + keys * (x + 1) / width - 1)};
    }
}

void rankInRow(const AttentionMapInput& map, MapNeighbourhood& around, const Draw& draw) {
    const std::int64_t n = map.keys.size(1);
    const AttentionMap row = draw(part(map, around.query, around.query + 1, 0, n, n));
    const float own = row.cells.data[around.key];
    if (std::isnan(own)) return;
    for (std::int64_t key = 0; key < n; ++key) {
        const float cell = row.cells.data[key];
        around.seen += !std::isnan(cell);
        around.rank += cell > own || (cell == own && key <= around.key); // includes the cell itself: ranks count from 1
    }
}

/// The cells around the one that the options lock, computed by `draw` one by one from the map whose queries and keys
/// `map` holds; null where no cell is locked or it lies outside the map. Computes only the rows of the neighbourhood,
/// never n x n. In a locked rectangle the cell is the largest one (of a difference the farthest from 0); a wide
/// rectangle is narrowed down step by step.
std::shared_ptr<const MapNeighbourhood> neighbourhoodOf(const AttentionMapInput& map, const ParameterValues& options,
                                                        const Draw& draw) {
    std::optional<MapCell> cell = MapCell::parse(options.text("cell"));
    const std::int64_t n = map.keys.size(1), firstRow = map.firstQuery, endRow = firstRow + map.queries.size(1);
    if (!cell || cell->firstQuery < firstRow || cell->lastQuery >= endRow || cell->lastKey >= n) return nullptr;
    goToLargest(map, *cell, options.choice("minus") != "nothing", draw);
    auto around = std::make_shared<MapNeighbourhood>();
    around->query = cell->firstQuery;
    around->key = cell->firstKey;
    const std::int64_t side = options.integer("around"), rows = std::min(side, endRow - firstRow),
                       keys = std::min(side, n);
    around->rowBegin = std::clamp<std::int64_t>(around->query - side / 2, firstRow, endRow - rows);
    around->keyBegin = std::clamp<std::int64_t>(around->key - side / 2, 0, n - keys);
    around->cells =
        draw(part(map, around->rowBegin, around->rowBegin + rows, around->keyBegin, around->keyBegin + keys, side))
            .cells;
    rankInRow(map, *around, draw);
    return around;
}

/// With more multiplications, about a quarter of a second on two cores, a sampled picture comes first.
constexpr double kGlance = 4e9;

struct Source {
    AttentionMapInput input; ///< the rectangle, heads and resolution; mask and value are set per kind
    std::shared_ptr<AttentionMapData> data;
};

/// A difference needs two different maps of weights. Other combinations throw: without the difference the picture would
/// be misleading.
void checkDifference(const ParameterValues& options) {
    const std::string &map = options.choice("map"), &minus = options.choice("minus");
    if (minus == "nothing") return;
    const char* place = "option minus of the attention map";
    if (map == "logits" || map == "cosine")
        throw Error({std::string(map == "logits" ? "logits are" : "cosines of keys are") +
                         " no attention weights, so the map of weights named by minus cannot be taken from them",
                     place, "Set minus to nothing, or map to causal, non_causal or chunks"});
    if (minus == map)
        throw Error({"a map less itself is 0 in every cell: map and minus are both " + map, place,
                     "Set minus to another of the maps, or to nothing"});
}

/// Keys divided by their norms, so that products are cosines; a zero key stays zero.
Tensor unitKeys(const ViewDataWork& work) {
    const Engine& engine = work.runner.engine();
    const HostTensor keys =
        downloadHead(engine, work.tensor(TensorRole::Keys, work.checkpoint), work.request.kvHead.value);
    const std::int64_t n = keys.shape[0], d = keys.shape[1];
    HostTensor unit{{1, n, d}, {}};
    const float* row = keys.data.data();
    for (std::int64_t i = 0; i < n; ++i, row += d) {
        double square = 0;
        for (std::int64_t c = 0; c < d; ++c) square += static_cast<double>(row[c]) * row[c];
        const double factor = square > 0 ? 1 / std::sqrt(square) : 0;
        for (std::int64_t c = 0; c < d; ++c) unit.data.push_back(static_cast<float>(factor * row[c]));
    }
    return engine.upload(std::move(unit));
}

void chooseHeads(const ViewDataRequest& request, const LayerInfo& layer, Source& source) {
    const std::string& heads = request.options.choice("heads");
    std::vector<std::int32_t>& chosen = source.input.queryHeads;
    for (std::size_t q = 0; q < layer.gqaGroupOf.size(); ++q)
        if (heads == "one" ? std::cmp_equal(q, request.queryHead.value) : layer.gqaGroupOf[q] == request.kvHead.value)
            chosen.push_back(static_cast<std::int32_t>(q));
    source.input.combine = heads == "max" ? GroupRule::Max : GroupRule::Mean;
    const bool isRun = static_cast<std::size_t>(chosen.back() - chosen.front()) + 1 == chosen.size();
    source.data->heads = chosen.size() == 1 ? fmt::format("query head {}", chosen.front())
                         : isRun ? fmt::format("{} of query heads {}–{}", heads, chosen.front(), chosen.back())
                                 : fmt::format("{} of query heads {}", heads, fmt::join(chosen, ", "));
}

/// The visible part in whole rows and keys, and one pixel for each of them at most.
void chooseRectangle(const ViewDataRequest& request, std::int64_t n, std::int64_t firstRow, Source& source) {
    const auto within = [](double value, std::int64_t low, std::int64_t high) {
        return std::clamp(static_cast<std::int64_t>(value), low, high);
    };
    AttentionMapInput& in = source.input;
    AttentionMapData& data = *source.data;
    const Viewport::Range all{0, static_cast<double>(n), static_cast<double>(firstRow), static_cast<double>(n)};
    const Viewport::Range range = request.range.value_or(all);
    in.keyBegin = data.keyBegin = within(std::floor(range.xMin), 0, n - 1);
    in.keyEnd = data.keyEnd = within(std::ceil(range.xMax), in.keyBegin + 1, n);
    in.rowBegin = data.rowBegin = within(std::floor(range.yMin), firstRow, n - 1);
    in.rowEnd = data.rowEnd = within(std::ceil(range.yMax), in.rowBegin + 1, n);
    in.width = std::clamp<std::int64_t>(request.width, 1, in.keyEnd - in.keyBegin);
    in.height = std::clamp<std::int64_t>(request.height, 1, in.rowEnd - in.rowBegin);
}

Source sourceOf(const ViewDataWork& work) {
    const CaptureInfo& info = work.request.capture->info();
    const LayerInfo& layer = info.layerInfo(work.request.layer);
    checkDifference(work.request.options);
    Source source{{}, std::make_shared<AttentionMapData>()};
    const bool cosines = work.request.options.choice("map") == "cosine";
    if (!cosines && layer.queryCount == 0)
        throw Error(
            {"the attention map needs queries, and layer " + std::to_string(work.request.layer.value) + " holds none",
             "", "Capture queries too, or show the cosine similarity of keys", info.path});
    const std::int64_t firstRow = cosines ? 0 : info.numTokens - layer.queryCount;
    source.data->firstQuery = source.input.firstQuery = static_cast<TokenIndex>(firstRow);
    if (cosines) {
        source.input.queries = source.input.keys = unitKeys(work);
        source.input.rule = {1, 0, 0, {0}};
        source.input.queryHeads = {0};
        source.data->heads = "KV head " + std::to_string(work.request.kvHead.value);
    } else {
        source.input.queries = work.tensor(TensorRole::Queries, work.checkpoint);
        source.input.keys = work.tensor(TensorRole::Keys, work.checkpoint);
        source.input.rule = attentionRuleOf(layer);
        chooseHeads(work.request, layer, source);
    }
    source.data->numTokens = info.numTokens;
    chooseRectangle(work.request, info.numTokens, firstRow, source);
    source.input.chunk = work.request.options.integer("chunk");
    return source;
}

void setKind(AttentionMapInput& input, const std::string& map) {
    input.mask = map == "non_causal" || map == "cosine" ? MapMask::All
                 : map == "chunks"                      ? MapMask::Chunks
                                                        : MapMask::Causal;
    input.value = map == "logits" || map == "cosine" ? MapValue::Logit : MapValue::Weight;
}

/// The engine's map, using the row lse known from earlier parts. Logits have no lse, and a map of all keys does not use
/// it: such a map sums its rows in double, while the cached lse is a float, which changes a weight by about 1e-6 of it.
AttentionMap mapOf(const ViewDataWork& work, AttentionMapInput input, const Checkpoint& checkpoint) {
    if (input.value == MapValue::Logit) return work.runner.engine().attentionMap(input, checkpoint);
    const auto sums = rowLogSumExpsOf(work.runner, work.request.capture, work.request.layer, input, checkpoint);
    if (input.keyBegin > 0 || input.keyEnd < input.keys.size(1)) input.rowLogSumExps = sums->known();
    AttentionMap map = work.runner.engine().attentionMap(input, checkpoint);
    sums->learn(map.rowLogSumExps);
    return map;
}

/// Whether one map of weights is subtracted from another.
bool isDifference(const ParameterValues& options) { return options.choice("minus") != "nothing"; }

/// The map for the options, in the input's rectangle. A difference subtracts the pooled cells of two maps.
AttentionMap chosenMap(const ViewDataWork& work, AttentionMapInput input, const Checkpoint& checkpoint) {
    setKind(input, work.request.options.choice("map"));
    if (!isDifference(work.request.options)) return mapOf(work, input, checkpoint);
    AttentionMap shown = mapOf(work, input, checkpoint.part(0, 0.5));
    setKind(input, work.request.options.choice("minus"));
    const AttentionMap other = mapOf(work, input, checkpoint.part(0.5, 1));
    for (std::size_t i = 0; i < shown.cells.data.size(); ++i) { // masked in one of the maps: weight 0 there
        float& cell = shown.cells.data[i];
        const float taken = other.cells.data[i];
        if (!std::isnan(cell) || !std::isnan(taken))
            cell = (std::isnan(cell) ? 0 : cell) - (std::isnan(taken) ? 0 : taken);
    }
    return shown;
}

/// log10 of the weights, computed here on a worker, because every step of a drag needs it.
HostTensor logsOf(const HostTensor& weights) {
    HostTensor logs{weights.shape, weights.data};
    for (float& cell : logs.data) cell = std::log10(cell); // of 0 -infinity, of a masked one NaN
    return logs;
}

AttentionMapData draw(const ViewDataWork& work, const Source& source, std::int64_t rowsPerPixel,
                      const Checkpoint& checkpoint) {
    AttentionMapData data = *source.data;
    AttentionMapInput input = source.input;
    input.rowsPerPixel = rowsPerPixel;
    AttentionMap shown = chosenMap(work, input, checkpoint);
    const std::string& map = work.request.options.choice("map");
    data.isDifference = isDifference(work.request.options);
    data.isWeight = map != "logits" && map != "cosine" && !data.isDifference;
    data.rowsAreKeys = map == "cosine";
    if (data.isWeight) data.columnSums = std::move(shown.columnSums);
    data.cells = std::move(shown.cells);
    if (data.isWeight) {
        data.logs = logsOf(data.cells);
        data.logEnds = endsOfWeights(data.logs);
    }
    data.rowsLookedAt = shown.rows;
    data.sampled = shown.rows < input.rowEnd - input.rowBegin;
    return data;
}

/// Upper bound on the keys computed per row: those of the rectangle where the rows' lse is known or not needed.
std::int64_t keysPerRow(const ViewDataWork& work, AttentionMapInput input) {
    const std::string &map = work.request.options.choice("map"), &minus = work.request.options.choice("minus");
    bool known = true;
    for (const std::string& kind : {map, minus == "nothing" ? map : minus}) {
        setKind(input, kind);
        known &= input.value == MapValue::Logit ||
                 rowLogSumExpsOf(work.runner, work.request.capture, work.request.layer, input, work.checkpoint)
                     ->knows(input.rowBegin - input.firstQuery, input.rowEnd - input.firstQuery);
    }
    return known ? input.keyEnd - input.keyBegin : input.keys.size(1);
}

ViewDataMaker::Value withCell(const AttentionMapData& map, const std::shared_ptr<const MapNeighbourhood>& cell) {
    auto data = std::make_shared<AttentionMapData>(map);
    data->locked = cell;
    return data;
}

/// Cache key of the picture, independent of the locked cell.
std::string mapKey(const LayerRunner& runner, ViewDataRequest request) {
    request.options.reset("cell");
    request.options.reset("around");
    return runner.keyOf(request.capture) + "map|" + attentionMapMaker().key(request);
}

/// The whole map, coarse, with one row sampled per pixel: for the small map, and shown where cells are not computed
/// yet. Cached.
std::shared_ptr<const HostTensor> overviewOf(const ViewDataWork& work, const Source& shown) {
    constexpr std::int64_t kAcross = 160;
    ViewDataRequest request = work.request;
    request.range.reset();
    request.width = request.height = kAcross;
    return work.runner.cache().get<HostTensor>(mapKey(work.runner, request) + "|overview", work.checkpoint, [&] {
        Source whole{shown.input, std::make_shared<AttentionMapData>(*shown.data)};
        chooseRectangle(request, shown.data->numTokens, shown.data->firstQuery, whole);
        HostTensor cells = draw(work, whole, 1, work.checkpoint.part(0, 0.02)).cells;
        const std::size_t bytes = cells.data.size() * sizeof(float);
        return StageCache::Made<HostTensor>{std::move(cells), bytes};
    });
}

ViewDataMaker::Value make(const ViewDataWork& work) {
    const Source source = sourceOf(work);
    if (work.request.range) source.data->overview = overviewOf(work, source);
    const AttentionMapInput& in = source.input;
    const double perRow = static_cast<double>(keysPerRow(work, in)) * static_cast<double>(in.keys.size(2)) *
                          static_cast<double>(in.queryHeads.size());
    const bool glance =
        perRow * static_cast<double>(in.rowEnd - in.rowBegin) > kGlance && in.height < in.rowEnd - in.rowBegin;
    const auto cell = [&](const Checkpoint& part) {
        return neighbourhoodOf(in, work.request.options,
                               [&](const AttentionMapInput& input) { return chosenMap(work, input, part); });
    };
    const auto map = work.runner.cache().get<AttentionMapData>(mapKey(work.runner, work.request), work.checkpoint, [&] {
        if (glance) {
            const AttentionMapData first = draw(work, source, 1, work.checkpoint.part(0, 0.05));
            work.partial(withCell(first, nullptr));
            if (const auto locked = cell(work.checkpoint.part(0.05, 0.1))) work.partial(withCell(first, locked));
        }
        AttentionMapData exact =
            draw(work, source, 0, glance ? work.checkpoint.part(0.1, 0.95) : work.checkpoint.part(0, 0.95));
        const std::size_t bytes =
            (exact.cells.data.size() + exact.logs.data.size() + exact.columnSums.data.size()) * sizeof(float);
        return StageCache::Made<AttentionMapData>{std::move(exact), bytes};
    });
    return withCell(*map, cell(work.checkpoint.part(0.95, 1)));
}

} // namespace

ViewDataMaker attentionMapMaker() {
    using enum DataScope;
    return {"attention_map", {Layer, KvHead, QueryHead, Frame}, make};
}

} // namespace kvscope
