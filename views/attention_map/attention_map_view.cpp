// The attention map as a view: options, layout, finding, facts.
#include "core/parameters/parameter_rows.h"
#include "views/attention_map/map_picture.h"
#include "views/common/chart.h"
#include "views/common/view_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <utility>

namespace kvscope {

namespace {

const TextStyle kCaption{FontFace::Interface, 11};

constexpr const char* kSource = "Compactor Figs. 2 and 8, KeyDiff Fig. 2";

ParameterTable dataOptions() {
    const ParameterChoice causal{"causal", "Causal", "softmax over the keys before the query"};
    const ParameterChoice nonCausal{"non_causal", "Non-causal", "softmax over all keys"};
    const ParameterChoice chunks{"chunks", "Chunks", "softmax over the keys of the query's chunk of C tokens"};
    return {
        choiceRow("map", "Map",
                  {causal,
                   nonCausal,
                   chunks,
                   {"logits", "Logits", "before the softmax, causal"},
                   {"cosine", "Cosine of keys", "key against key, no query"}},
                  Stage::Features, "What a cell holds.", kSource),
        tokensRow("chunk", "Chunk", "C", {2, 4096, 256, 1, true}, Stage::Features,
                  "Tokens that see each other in the map of chunks.", "Compactor 3.3: C = 256"),
        choiceRow("heads", "Heads",
                  {{"one", "The query head", "as chosen in the bar above"},
                   {"mean", "Mean of the group", "cell by cell over the heads that read this KV head"},
                   {"max", "Largest of the group", "cell by cell"}},
                  Stage::Features, "Which query heads of the KV head are seen.", kSource),
        choiceRow("minus", "Minus", {{"nothing", "Nothing", "the map itself"}, causal, nonCausal, chunks},
                  Stage::Features,
                  "Subtracts another map of weights from the causal, non-causal or chunked map; each is pooled first.",
                  kSource)};
}

ParameterTable drawingOptions() {
    return {choiceRow("scale", "Scale",
                      {{"log", "Logarithmic", "powers of ten, between ends chosen from the weights shown"},
                       {"linear", "Linear", "0 to the largest weight shown"},
                       {"row", "By row", "each row divided by its largest weight"},
                       {"rank", "Rank", "equal steps of the sorted cells"}},
                      Stage::Select, "How weights become colours.", "the map's own scale"),
            integerRow("floor", "Floor", "", "log10", {-9, 0, 0}, Stage::Select,
                       "The weight at which the logarithmic scale begins. 0: at most one in a hundred of the cells "
                       "shown is darker.",
                       "the map's own scale"),
            valueRangeOption(checkMapRange),
            mapCellOption(),
            mapAroundOption(),
            colourMapOption(),
            flagRow("invert", "Invert colours", false, Stage::Select, "Exchanges the ends of the colour map.",
                    "the map's own scale")};
}

ParameterTable makeOptions() {
    ParameterTable options = dataOptions();
    for (ParameterSpec& row : drawingOptions()) options.push_back(std::move(row));
    return options;
}

/// Text of an option that chooses a map, such as "non-causal".
std::string named(const ParameterValues& options, const char* option) {
    std::string words = options.choice(option);
    std::ranges::replace(words, '_', '-');
    return words;
}

/// "max of 8 keys × 8 queries a pixel", "max of 50 keys × 2 of 70 queries a pixel" where rows are sampled; empty
/// where every cell has a pixel.
std::string poolingOf(const AttentionMapData& data, const MapImage& image) {
    const std::int64_t perRow = (data.rowEnd - data.rowBegin + image.rows - 1) / image.rows,
                       looked = (data.rowsLookedAt + image.rows - 1) / image.rows;
    const std::int64_t perColumn = (data.keyEnd - data.keyBegin + image.columns - 1) / image.columns;
    if (perRow <= 1 && perColumn <= 1) return {};
    const std::string rows = data.sampled ? fmt::format("{} of {}", looked, perRow) : std::to_string(perRow);
    if (data.rowsAreKeys) return fmt::format("max of {} × {} keys a pixel", perColumn, rows);
    return fmt::format("max of {} {} × {} {} a pixel", perColumn, perColumn == 1 ? "key" : "keys", rows,
                       perRow == 1 ? "query" : "queries");
}

/// "causal", "query head 4", "max of 8 keys × 8 queries a pixel", "sampled rows (440 of 1,028)", "log10, 3e−6 to 0.1":
/// facts that the picture does not show come first, because the end may be cut off.
std::vector<std::string> captionOf(const AttentionMapData& data, const MapScale& scale, const MapLayout& layout,
                                   double pixelScale, const ParameterValues& options) {
    std::vector<std::string> facts{named(options, "map"), data.heads};
    if (data.isDifference) facts[0] += " minus " + named(options, "minus");
    if (std::string pooling = poolingOf(data, mapImageOf(layout, data, pixelScale)); !pooling.empty())
        facts.push_back(std::move(pooling));
    if (data.sampled)
        facts.push_back(fmt::format("sampled rows ({} of {})", formatCount(data.rowsLookedAt),
                                    formatCount(data.rowEnd - data.rowBegin)));
    facts.push_back(scale.name());
    if (layout.captionBeside && !layout.axes.titles)
        facts.push_back(data.rowsAreKeys ? "both axes: keys, from 0" : "→ key, ↓ query, from 0");
    return facts;
}

/// Above the map all facts share the rows; beside the map each fact begins a row.
std::vector<std::string> captionLines(const SceneBuilder& builder, const std::vector<std::string>& facts,
                                      const MapLayout& layout) {
    if (!layout.captionBeside)
        return builder.wrap(fmt::format("{}", fmt::join(facts, " · ")), kCaption, layout.caption.width);
    std::vector<std::string> lines;
    for (const std::string& fact : facts)
        for (std::string& line : builder.wrap(fact, kCaption, layout.caption.width)) lines.push_back(std::move(line));
    return lines;
}

void drawCaption(SceneBuilder& builder, std::vector<std::string> lines, const Box& box, const Theme& theme) {
    const auto most = std::max<std::size_t>(1, static_cast<std::size_t>(box.height / kCaptionPitch));
    for (std::size_t i = most; i < lines.size(); ++i) lines[most - 1] += " " + lines[i];
    for (std::size_t i = 0; i < std::min(most, lines.size()); ++i)
        builder.label({box.x, box.y + kCaptionPitch * (static_cast<double>(i) + 0.5)},
                      builder.elide(lines[i], kCaption, box.width), kCaption, theme.text2);
}

/// Gives the caption two rows where it needs them, and the magnified cells a width where they would cover the map.
MapLayout arranged(const SceneBuilder& builder, const ViewInput& input, const ParameterValues& options,
                   const AttentionMapData& data, const MapScale& scale, const Viewport& viewport) {
    MapMargins margins;
    MapLayout layout = layoutOfMap(input, data, viewport, margins);
    if (viewport.height >= 300) {
        std::vector<std::string> facts = captionOf(data, scale, layout, viewport.pixelScale, options);
        facts.back() = "log10, 0.00123 to 0.00123"; // the widest such text
        margins.captionRows = captionLines(builder, facts, layout).size() > 1 ? 2 : 1;
    }
    margins.right = widthForInset(layout, data, input, viewport);
    return layoutOfMap(input, data, viewport, margins);
}

/// The number of keys that column `column` of `columns` pools, split as the engine splits: columns differ by one key.
std::int64_t keysOfColumn(std::int64_t keys, std::int64_t columns, std::int64_t column) {
    return keys * (column + 1) / columns - keys * column / columns;
}

/// Columns of pixels that together hold half of the weight, taken in descending order of the weight per key.
struct HeavyColumns {
    std::int64_t columns = 0, keys = 0;
};

HeavyColumns columnsForHalf(const std::vector<float>& sums, std::int64_t keys) {
    const auto keysOf = [&](std::int64_t column) { return keysOfColumn(keys, std::ssize(sums), column); };
    const auto weightOf = [&](std::int64_t column) {
        return static_cast<double>(sums[static_cast<std::size_t>(column)]);
    };
    std::vector<std::int64_t> order(sums.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::sort(order, std::greater<>(), [&](std::int64_t column) {
        return std::pair(weightOf(column) / static_cast<double>(keysOf(column)), -column);
    });
    const double half = std::accumulate(sums.begin(), sums.end(), 0.0) / 2;
    double sum = 0;
    HeavyColumns heavy;
    while (std::cmp_less(heavy.columns, sums.size()) && sum < half) {
        const std::int64_t column = order[static_cast<std::size_t>(heavy.columns++)];
        sum += weightOf(column);
        heavy.keys += keysOf(column);
    }
    return heavy;
}

std::vector<OptionNeed> optionNeeds() {
    const std::vector<std::string> weights{"causal", "non_causal", "chunks"};
    const OptionIs noDifference{"minus", {"nothing"}};
    return {{"chunk", {{"map", {"chunks"}}, {"minus", {"chunks"}}}},
            {"heads", {{"map", choicesBut(makeOptions(), "map", {"cosine"})}}},
            {"scale", {{"map", weights}}}, // logits, cosines and differences have the scales that suit them
            {"scale", {noDifference}},
            {"floor", {{"scale", {"log"}}}},
            {"around", {{"cell", {}}}},
            {"colours", {{"map", choicesBut(makeOptions(), "map", {"cosine"})}}}, // signed values are blue and red
            {"colours", {noDifference}}};
}

class AttentionMapView final : public View {
public:
    AttentionMapView()
        : View({.id = "attention_map",
                .name = "Attention map",
                .summary = "Which query gives which key how much weight, and which of the keys are kept",
                .paper = "Compactor Figs. 2 and 8, KeyDiff Fig. 2",
                .group = ViewGroup::Why,
                .needs = optionNeeds(),
                .data = "attention_map",
                .waiting = "Computing the attention map…",
                .place = ViewPlace::BesidePane,
                .teaching = TeachingRole::Steps,
                .leastHeight = 220},
               makeOptions()) {}

    Scene draw(const ViewInput& input, const ParameterValues& options, const Viewport& viewport) const override {
        const auto data = dataAs<AttentionMapData>(input);
        const Theme& theme = themeOf(viewport.theme);
        const std::shared_ptr<const MapScale> held = scaleOfMap(*data, options);
        const MapScale& scale = *held;
        Scene scene = blankScene(viewport);
        SceneBuilder builder(scene, *viewport.text);
        const MapLayout layout = arranged(builder, input, options, *data, scale, viewport);
        drawCaption(builder,
                    captionLines(builder, captionOf(*data, scale, layout, viewport.pixelScale, options), layout),
                    layout.caption, theme);
        drawMarginal(builder, layout, *data, theme);
        drawRails(builder, layout, input, theme);
        drawMap(builder, layout, *data, scale, viewport.pixelScale, theme);
        drawMarks(builder, layout, input, theme);
        drawAxes(builder, layout.frame, layout.axes, theme);
        if (layout.column.width > 0) {
            const auto column = data->memo.get(
                "column", scale.key(), [&] { return std::make_shared<const ColourColumnSpec>(scale.column()); });
            drawColourColumn(builder, layout.column, *column, theme);
        }
        drawLockedCell(builder, layout, *data, scale, input, viewport);
        drawMinimap(builder, layout, *data, scale, input, viewport);
        drawProvenance(builder, input, viewport);
        setDataRange(scene, layout.frame);
        return scene;
    }

    std::string conclude(const ViewInput& input, const ParameterValues& options) const override {
        const auto data = dataAs<AttentionMapData>(input);
        const std::string sampled = data->sampled ? " (sampled rows)" : "";
        if (data->locked) return lockedSentence(input, *data);
        if (lockReleased(options) && !input.data.computing)
            return fmt::format("The cell {} is none of this map", options.text("cell"));
        if (std::ranges::all_of(data->cells.data, [](float cell) { return std::isnan(cell); }))
            return "All cells shown are masked: none of these queries sees any of these keys" + sampled;
        if (data->columnSums.empty()) {
            float low = INFINITY, high = -INFINITY;
            for (const float cell : data->cells.data) {
                low = std::isnan(cell) ? low : std::min(low, cell);
                high = std::isnan(cell) ? high : std::max(high, cell);
            }
            if (data->isDifference)
                return fmt::format("Pixel by pixel the {} map lies up to {} above the {} one, and up to {} below it{}",
                                   named(options, "map"), formatShort(std::max(0.0, static_cast<double>(high))),
                                   named(options, "minus"), formatShort(std::max(0.0, -static_cast<double>(low))),
                                   sampled);
            // Where cells are pooled, the smallest cell is unknown; `low` is then the smallest of the pixels' maxima.
            const bool pools = data->cells.shape[0] < data->rowEnd - data->rowBegin ||
                               data->cells.shape[1] < data->keyEnd - data->keyBegin;
            return fmt::format("{} range from {} to {}{}", pools ? "The largest values of the pixels" : "Cells shown",
                               formatShort(low), formatShort(high), sampled);
        }
        const std::vector<float>& sums = data->columnSums.data;
        const double total = std::accumulate(sums.begin(), sums.end(), 0.0);
        const std::int64_t keys = data->keyEnd - data->keyBegin, first = keysOfColumn(keys, std::ssize(sums), 0);
        const HeavyColumns half = columnsForHalf(sums, keys);
        const double share = static_cast<double>(half.keys) / static_cast<double>(keys);
        const std::string tokens = first == 1 ? fmt::format("Key {} takes", formatCount(data->keyBegin))
                                              : fmt::format("Keys {}–{} take", formatCount(data->keyBegin),
                                                            formatCount(data->keyBegin + first - 1));
        // Where a column stands for several keys, fewer than all of them may hold its weight.
        const std::string rest = half.columns <= 1
                                     ? ""
                                     : fmt::format("; half of it falls on {}{} of the keys",
                                                   keys == std::ssize(sums) ? "" : "at most ", formatPercent(share));
        return fmt::format("{} {} of the weight shown{}{}", tokens,
                           formatPercent(total > 0 ? static_cast<double>(sums.front()) / total : 0), rest, sampled);
    }

    ViewTable table(const ViewInput& input, const ParameterValues&) const override {
        return mapTable(dataAs<AttentionMapData>(input));
    }

    PointFacts inspect(const ViewInput& input, const ParameterValues&, const Scene& scene, Point at) const override {
        return mapFactsAt(input, *dataAs<AttentionMapData>(input), scene, at);
    }

    std::optional<SettingChange> draggedTo(const ViewInput& input, const ParameterValues&, const Scene& scene, PickId,
                                           Point at) const override {
        const auto data = dataAs<AttentionMapData>(input);
        return data ? movedOnMinimap(*data, scene, at) : std::nullopt;
    }

    std::unique_ptr<const ColourScale> colourScale(const ViewInput& input,
                                                   const ParameterValues& options) const override {
        const auto data = dataAs<AttentionMapData>(input); // the input keeps it alive, as long as the scale needs it
        return data ? std::make_unique<const MapScale>(*scaleOfMap(*data, options)) : nullptr;
    }

    std::optional<SettingChange> lockMoved(const ViewInput& input, const ParameterValues& options, int across,
                                           int down) const override {
        std::optional<MapCell> cell = MapCell::parse(options.text("cell"));
        const auto data = dataAs<AttentionMapData>(input);
        if (!cell || !data) return std::nullopt;
        TokenIndex query = cell->firstQuery, key = cell->firstKey;
        if (query < cell->lastQuery || key < cell->lastKey) { // only the data tell where in the rectangle it lies
            if (!data->locked) return std::nullopt;
            query = data->locked->query;
            key = data->locked->key;
        }
        const auto last = static_cast<TokenIndex>(input.capture->info().numTokens) - 1;
        query = std::clamp<TokenIndex>(query + down, data->firstQuery, last);
        key = std::clamp<TokenIndex>(key + across, 0, last);
        return lockOf(MapCell{query, query, key, key});
    }

    std::optional<TokenIndex> lockedToken(const ViewInput& input, const ParameterValues& options) const override {
        const auto data = dataAs<AttentionMapData>(input);
        return lockReleased(options) && data && data->locked ? std::optional(data->locked->key) : std::nullopt;
    }

    std::optional<SettingChange> lockReleased(const ParameterValues& options) const override {
        return options.isDefault("cell") ? std::nullopt : std::optional(lockOf(std::nullopt));
    }
};

} // namespace

const View& attentionMapView() { return onlyOne<AttentionMapView>(); }

} // namespace kvscope
