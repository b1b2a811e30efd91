// The attention map as a view: options, layout, what it says and what can be asked of it.
#include "views/attention_map/attention_map_view.h"

#include "views/attention_map/map_cell.h"
#include "views/attention_map/map_facts.h"
#include "views/attention_map/map_inset.h"
#include "views/attention_map/map_painter.h"
#include "views/cell_lock.h"
#include "views/chart.h"
#include "views/explanations.h"
#include "views/option_needs.h"
#include "views/view_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace kvscope {

namespace {

constexpr double kSideWidth = kRailHeight + 6;

constexpr const char* kSource = "Compactor Figs. 2 and 8, KeyDiff Fig. 2";

ParameterTable dataOptions() {
    const ParameterChoice causal{"causal", "Causal", "softmax over the keys before the query"};
    const ParameterChoice nonCausal{"non_causal", "Non-causal", "softmax over all keys"};
    const ParameterChoice chunks{"chunks", "Chunks", "softmax over the keys of the query's chunk of C tokens"};
    ParameterSpec chunk = integerOption("chunk", "Chunk", "Tokens that see each other in the map of chunks.",
                                        "Compactor 3.2: C = 256", 2, 4096, 256, Stage::Features);
    chunk.symbol = "C";
    chunk.unit = "tokens";
    chunk.logarithmic = true;
    chunk.maxIsTokens = true;
    return {choiceOption("map", "Map", "What a cell holds.", kSource,
                         {causal, nonCausal, chunks, {"logits", "Logits", "before the softmax, causal"},
                          {"cosine", "Cosine of keys", "key against key, no query"}},
                         Stage::Features),
            chunk,
            choiceOption("heads", "Heads", "Which query heads of the KV head are seen.", kSource,
                         {{"one", "The query head", "as chosen in the bar above"},
                          {"mean", "Mean of the group", "cell by cell over the heads that read this KV head"},
                          {"max", "Largest of the group", "cell by cell"}},
                         Stage::Features),
            choiceOption("minus", "Minus", "Subtracts another map of weights from the causal, non-causal or chunked map; each is pooled first.", kSource,
                         {{"nothing", "Nothing", "the map itself"}, causal, nonCausal, chunks}, Stage::Features)};
}

ParameterTable drawingOptions() {
    ParameterSpec floor = integerOption("floor", "Floor", "The weight below which the logarithmic scale ends.",
                                        "the map's own scale", -9, -1, -4);
    floor.unit = "log10";
    return {choiceOption("scale", "Scale", "How weights become colours.", "the map's own scale",
                         {{"log", "Logarithmic", "powers of ten, from the floor to 1"},
                          {"linear", "Linear", "0 to the largest weight shown"},
                          {"row", "By row", "each row divided by its largest weight"},
                          {"rank", "Rank", "equal steps of the sorted cells"}}),
            floor, valueRangeOption(checkMapRange), mapCellOption(), mapAroundOption(), colourMapOption(),
            flagOption("invert", "Invert colours", "Exchanges the ends of the colour map.", "the map's own scale")};
}

std::shared_ptr<const ParameterTable> makeOptions() {
    ParameterTable options = dataOptions();
    for (ParameterSpec& row : drawingOptions())
        options.push_back(std::move(row));
    return std::make_shared<const ParameterTable>(std::move(options));
}

class AttentionMapView final : public View, public ColourScaleView, public CellLockView, public OptionNeedsView {
public:
    AttentionMapView()
        : View({.id = "attention_map",
                .name = "Attention map",
                .summary = "Which query gives which key how much weight, and which of the keys are kept",
                .paper = "Compactor Figs. 2 and 8, KeyDiff Fig. 2",
                .help = std::string(viewExplanation("attention_map_view")),
                .options = makeOptions(),
                .data = "attention_map"}) {}

    Scene buildScene(const ViewInput& input, const ParameterValues& options, const Viewport& viewport) const override;
    std::string finding(const ViewInput& input, const ParameterValues& options) const override;
    ViewTable table(const ViewInput& input, const ParameterValues& options) const override;
    std::vector<OptionNeed> optionNeeds() const override;
    PointFacts factsAt(const ViewInput& input, const ParameterValues& options, const Scene& scene, Point at) const override;
    bool isLocked(const ParameterValues& options) const override { return !options.isDefault("cell"); }
    std::optional<Adoption> lockMoved(const ViewInput& input, const ParameterValues& options, int across, int down) const override;
    Adoption released() const override { return lockOf(std::nullopt); }

private:
    std::unique_ptr<const ColourScale> scaleOf(const ViewInput& input, const ParameterValues& options) const override;
};

std::string whyNoPicture(const ViewInput& input) {
    return whyNoData<AttentionMapData>(input, "Computing the attention map…");
}

/// One of the options that choose a map: "non-causal".
std::string named(const ParameterValues& options, const char* option) {
    std::string words = options.choice(option);
    std::replace(words.begin(), words.end(), '_', '-');
    return words;
}

/// "causal softmax · query head 4 · max of 8 × 8 cells · sampled rows".
std::string captionOf(const AttentionMapData& data, const MapScale& scale, const MapImage& image, const ParameterValues& options) {
    std::string text = named(options, "map");
    if (data.isDifference)
        text += " minus " + named(options, "minus");
    text += " · " + data.heads + " · " + scale.name();
    const std::int64_t perRow = (data.rowEnd - data.rowBegin + image.rows - 1) / image.rows;
    const std::int64_t perColumn = (data.keyEnd - data.keyBegin + image.columns - 1) / image.columns;
    if (perRow > 1 || perColumn > 1)
        text += fmt::format(" · max of {} × {} cells", perRow, perColumn);
    if (data.sampled)
        text += fmt::format(" · sampled rows ({} of {})", formatCount(data.rowsLookedAt),
                            formatCount(data.rowEnd - data.rowBegin));
    return text;
}

MapLayout layoutOf(const ViewInput& input, const AttentionMapData& data, const Viewport& viewport) {
    const auto n = static_cast<double>(input.capture->info().numTokens);
    const Viewport::Range range =
        viewport.range.value_or(Viewport::Range{0, n, static_cast<double>(data.firstQuery), n});
    MapLayout layout;
    layout.frame.x = {range.xMin, range.xMax, AxisScale::Position, "Key position (0-based)"};
    layout.frame.y = {range.yMax, range.yMin, AxisScale::Position,
                      data.rowsAreKeys ? "Key position (0-based)" : "Query position (0-based)"};
    const bool roomy = viewport.height >= 240 && viewport.width >= 260;
    const double rails = static_cast<double>(input.panes.size()) * (kRailHeight + kRailGap);
    const double marginal = roomy && !data.columnSums.empty() ? 26 : 0;
    const double top = 22 + marginal + rails + 4, right = kSideWidth + (roomy ? kLabelledColumnWidth + 6 : 0);
    AxesStyle style;
    style.titles = roomy;
    const Box area{8, top, viewport.width - 12 - right, viewport.height - top - (viewport.forExport ? 22 : 4)};
    Box plot = plotBoxFor(area, layout.frame.y, style, {*viewport.text});
    const double side = std::max(1.0, std::min(plot.width, plot.height));
    layout.frame.plot = {plot.x, plot.y, side, side};
    layout.rails = {plot.x, plot.y - rails - 5, side, rails};
    layout.marginal = {plot.x, layout.rails.y - marginal, side, std::max(0.0, marginal - 4)};
    layout.sideRail = {plot.x + side + 4, plot.y, kRailHeight, side};
    if (roomy)
        layout.column = {layout.sideRail.right() + 6, plot.y, kLabelledColumnWidth, side};
    return layout;
}

std::vector<OptionNeed> AttentionMapView::optionNeeds() const {
    const std::vector<std::string> weights{"causal", "non_causal", "chunks"};
    const OptionIs noDifference{"minus", {"nothing"}};
    return {{"chunk", {{"map", {"chunks"}}, {"minus", {"chunks"}}}},
            {"heads", {{"map", choicesBut(*card().options, "map", {"cosine"})}}},
            {"scale", {{"map", weights}}}, // logits, cosines and differences have the scales that suit them
            {"scale", {noDifference}},
            {"floor", {{"scale", {"log"}}}},
            {"around", {{"cell", {}}}},
            {"colours", {{"map", choicesBut(*card().options, "map", {"cosine"})}}}, // signed values are blue and red
            {"colours", {noDifference}}};
}

Scene AttentionMapView::buildScene(const ViewInput& input, const ParameterValues& options, const Viewport& viewport) const {
    if (const std::string why = whyNoPicture(input); !why.empty())
        return emptyScene(why, viewport);
    const auto data = dataAs<AttentionMapData>(input);
    const Theme& theme = themeOf(viewport.theme);
    const std::shared_ptr<const MapScale> held = scaleOfMap(*data, options);
    const MapScale& scale = *held;
    const MapLayout layout = layoutOf(input, *data, viewport);
    Scene scene;
    scene.width = viewport.width;
    scene.height = viewport.height;
    scene.background = theme.canvas;
    SceneBuilder builder(scene, *viewport.text);
    const TextStyle small{FontFace::Interface, 11};
    builder.text({8, 11}, builder.elide(captionOf(*data, scale, mapImageOf(layout, *data, viewport.pixelScale), options), small, viewport.width - 16), small, theme.text2,
                 HorizontalAlign::Left, VerticalAlign::Middle);
    drawMarginal(builder, layout, *data, theme);
    drawRails(builder, layout, input, theme);
    drawMap(builder, layout, *data, scale, viewport.pixelScale, theme);
    drawMarks(builder, layout, input, theme);
    AxesStyle style;
    style.grid = false;
    style.titles = layout.column.width > 0;
    style.forPaper = viewport.theme == ThemeId::Paper;
    drawAxes(builder, layout.frame, style, theme);
    if (layout.column.width > 0) {
        ColourColumnSpec column = *data->memo.get("column", scale.key(), [&] { return std::make_shared<const ColourColumnSpec>(scale.column()); });
        column.handles = !viewport.forExport;
        drawColourColumn(builder, layout.column, column, theme);
    }
    drawLockedCell(builder, layout, *data, scale, input, viewport);
    drawProvenance(builder, input, viewport);
    scene.plot = layout.frame.plot;
    scene.xMin = layout.frame.x.low, scene.xMax = layout.frame.x.high;
    scene.yMin = layout.frame.y.high, scene.yMax = layout.frame.y.low;
    scene.yDown = true;
    return scene;
}

/// How many columns of pixels it takes to hold half of the weight, largest first.
std::size_t columnsForHalf(std::vector<float> sums) {
    std::sort(sums.begin(), sums.end(), std::greater<>());
    const double half = std::accumulate(sums.begin(), sums.end(), 0.0) / 2;
    double sum = 0;
    std::size_t count = 0;
    while (count < sums.size() && sum < half)
        sum += static_cast<double>(sums[count++]);
    return count;
}

std::string AttentionMapView::finding(const ViewInput& input, const ParameterValues& options) const {
    if (const std::string why = whyNoPicture(input); !why.empty())
        return why;
    const auto data = dataAs<AttentionMapData>(input);
    const std::string sampled = data->sampled ? " (sampled rows)" : "";
    if (data->locked)
        return lockedSentence(input, *data);
    if (isLocked(options) && !input.data.computing)
        return fmt::format("The cell {} is none of this map", options.text("cell"));
    if (data->columnSums.empty()) {
        float low = INFINITY, high = -INFINITY;
        for (const float cell : data->cells.data) {
            low = std::isnan(cell) ? low : std::min(low, cell);
            high = std::isnan(cell) ? high : std::max(high, cell);
        }
        if (data->isDifference)
            return fmt::format("Pixel by pixel the {} map lies up to {} above the {} one, and up to {} below it{}", named(options, "map"),
                               formatShort(std::max(0.0, static_cast<double>(high))), named(options, "minus"),
                               formatShort(std::max(0.0, -static_cast<double>(low))), sampled);
        return fmt::format("Cells shown range from {} to {}{}", formatShort(static_cast<double>(low)),
                           formatShort(static_cast<double>(high)), sampled);
    }
    const std::vector<float>& sums = data->columnSums.data;
    const double total = std::accumulate(sums.begin(), sums.end(), 0.0);
    const std::int64_t keys = data->keyEnd - data->keyBegin, first = (keys + std::ssize(sums) - 1) / std::ssize(sums);
    const std::size_t half = columnsForHalf(sums);
    const auto share = static_cast<double>(half) / static_cast<double>(sums.size());
    const std::string tokens = first == 1 ? fmt::format("Key {} takes", data->keyBegin)
                                          : fmt::format("Keys {}–{} take", data->keyBegin, data->keyBegin + first - 1);
    return fmt::format("{} {} % of the weight shown; half of it falls on {} % of the keys{}", tokens,
                       formatFixed(total > 0 ? 100 * static_cast<double>(sums.front()) / total : 0, 1),
                       formatFixed(100 * share, 1), sampled);
}

PointFacts AttentionMapView::factsAt(const ViewInput& input, const ParameterValues& options, const Scene& scene, Point at) const {
    const auto data = dataAs<AttentionMapData>(input);
    return data ? mapFactsAt(input, *data, options, scene, at) : PointFacts{};
}

std::unique_ptr<const ColourScale> AttentionMapView::scaleOf(const ViewInput& input, const ParameterValues& options) const {
    const auto data = dataAs<AttentionMapData>(input); // held by the input
    return data ? std::make_unique<const MapScale>(*data, options) : nullptr;
}

std::optional<Adoption> AttentionMapView::lockMoved(const ViewInput& input, const ParameterValues& options, int across, int down) const {
    std::optional<MapCell> cell = MapCell::parse(options.text("cell"));
    const auto data = dataAs<AttentionMapData>(input);
    if (!cell || !data)
        return std::nullopt;
    TokenIndex query = cell->firstQuery, key = cell->firstKey;
    if (query < cell->lastQuery || key < cell->lastKey) { // where in the rectangle it lies is known with the data
        if (!data->locked)
            return std::nullopt;
        query = data->locked->query;
        key = data->locked->key;
    }
    const auto last = static_cast<TokenIndex>(input.capture->info().numTokens) - 1;
    query = std::clamp<TokenIndex>(query + down, data->firstQuery, last);
    key = std::clamp<TokenIndex>(key + across, 0, last);
    return lockOf(MapCell{query, query, key, key});
}

ViewTable AttentionMapView::table(const ViewInput& input, const ParameterValues&) const {
    return mapTable(dataAs<AttentionMapData>(input));
}

} // namespace

const View& attentionMapView() {
    static const AttentionMapView view;
    return view;
}

} // namespace kvscope
