// The numbers of the picture, under the pointer and as a table; the minimap; the parts that are not computed yet.
#include "core/run/token_decision.h"
#include "views/attention_map/map_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace kvscope {

namespace {

/// The first row or key of pixel `index`, when the rows or keys begin .. end - 1 are shown as `pieces` pixels.
TokenIndex firstOf(std::int64_t begin, std::int64_t end, std::int64_t pieces, std::int64_t index) {
    return static_cast<TokenIndex>(begin + (end - begin) * index / pieces);
}

/// The cells that stand behind a pixel.
MapCell pixelOf(const AttentionMapData& data, std::int64_t x, std::int64_t y) {
    const std::int64_t width = data.cells.shape[1], height = data.cells.shape[0];
    return {firstOf(data.rowBegin, data.rowEnd, height, y), firstOf(data.rowBegin, data.rowEnd, height, y + 1) - 1,
            firstOf(data.keyBegin, data.keyEnd, width, x), firstOf(data.keyBegin, data.keyEnd, width, x + 1) - 1};
}

/// The cells that stand behind the pixel at a data position; nothing outside the data.
std::optional<MapCell> pixelAt(const AttentionMapData& data, double key, double row) {
    const double across = (key - static_cast<double>(data.keyBegin)) / static_cast<double>(data.keyEnd - data.keyBegin);
    const double down = (row - static_cast<double>(data.rowBegin)) / static_cast<double>(data.rowEnd - data.rowBegin);
    if (across < 0 || across >= 1 || down < 0 || down >= 1) return std::nullopt;
    return pixelOf(data, static_cast<std::int64_t>(across * static_cast<double>(data.cells.shape[1])),
                   static_cast<std::int64_t>(down * static_cast<double>(data.cells.shape[0])));
}

/// Index of a pixel in the cells, which are stored row by row.
std::size_t indexOf(const AttentionMapData& data, const MapCell& pixel) {
    const std::int64_t y =
        ((pixel.firstQuery - data.rowBegin + 1) * data.cells.shape[0] - 1) / (data.rowEnd - data.rowBegin);
    const std::int64_t x =
        ((pixel.firstKey - data.keyBegin + 1) * data.cells.shape[1] - 1) / (data.keyEnd - data.keyBegin);
    return static_cast<std::size_t>(y * data.cells.shape[1] + x);
}

bool holds(const MapCell& cells, const MapNeighbourhood& locked) {
    return locked.query >= cells.firstQuery && locked.query <= cells.lastQuery && locked.key >= cells.firstKey &&
           locked.key <= cells.lastKey;
}

bool isSingle(const MapCell& cells) { return cells.firstQuery == cells.lastQuery && cells.firstKey == cells.lastKey; }

/// The rank of a cell in its row, from 1, as for a locked cell. A picture knows only its own pixels: if these are not
/// all the query's keys one by one, the text says what the rank counts.
std::string rankInRow(const ViewInput& input, const AttentionMapData& data, const MapCell& cells) {
    if (data.locked && isSingle(cells) && holds(cells, *data.locked))
        return fmt::format("{} of {} keys", formatCount(data.locked->rank), formatCount(data.locked->seen));
    if (cells.firstQuery < data.rowBegin || cells.lastQuery >= data.rowEnd || cells.firstKey < data.keyBegin ||
        cells.lastKey >= data.keyEnd)
        return {}; // magnified beyond the edge of the picture
    const std::int64_t width = data.cells.shape[1];
    const bool keyByKey = width == data.keyEnd - data.keyBegin,
               rowByRow = data.cells.shape[0] == data.rowEnd - data.rowBegin;
    if (isSingle(cells) && !(keyByKey && rowByRow)) return {}; // magnified, of a picture that pools
    const std::size_t index = indexOf(data, cells), first = index - index % static_cast<std::size_t>(width);
    const float own = data.cells.data[index];
    std::int64_t rank = 0, seen = 0;
    for (std::size_t i = first; i < first + static_cast<std::size_t>(width); ++i) {
        const float other = data.cells.data[i];
        seen += !std::isnan(other);
        rank += other > own || (other == own && i <= index);
    }
    const bool toTheLast = data.keyEnd == input.capture->info().numTokens ||
                           std::isnan(data.cells.data[first + static_cast<std::size_t>(width) - 1]);
    const bool all = data.keyBegin == 0 && toTheLast;
    const char* what = !(keyByKey && rowByRow) ? "the {} pixels shown" : all ? "{} keys" : "the {} keys shown";
    return fmt::format("{} of ", formatCount(rank)) + fmt::format(fmt::runtime(what), formatCount(seen));
}

/// "evicted, score rank 612 from 0".
std::string decisionText(const ViewInput& input, const PaneData& pane, TokenIndex key) {
    const TokenState state = tokenStates(input, pane)[key];
    const char* words[] = {"kept", "kept, protected", "evicted", "after the cut"};
    std::string text = words[static_cast<int>(state)];
    if (state == TokenState::AfterCut) return text;
    const TokenDecision decision = tokenDecisionOf(*pane.result, input.kvHead, key);
    return decision.scored ? fmt::format("{}, score rank {} from 0", text, formatCount(decision.rank)) : text;
}

/// "12 of these 61 keys kept": the cells of a pixel that pools share one value, so no token of it is named.
std::string keptText(const ViewInput& input, const PaneData& pane, const MapCell& cells) {
    const std::vector<TokenState> states = tokenStates(input, pane);
    const auto first = states.begin() + cells.firstKey, last = states.begin() + cells.lastKey + 1;
    const auto kept = std::count_if(first, last, isKept);
    if (last - first == 1) return kept == 1 ? "this key kept" : "this key not kept";
    return fmt::format("{} of these {} keys kept", formatCount(kept), formatCount(last - first));
}

std::string rangeText(TokenIndex first, TokenIndex last) {
    return first == last ? formatCount(first) : fmt::format("{} to {}", formatCount(first), formatCount(last));
}

/// Facts of one cell, or of a pixel that pools: the pixel's value belongs to one of its cells, which a click finds, and
/// the facts speak of all its cells. `key`: the key under the pointer.
PointFacts factsOf(const ViewInput& input, const AttentionMapData& data, const MapCell& cells, TokenIndex key,
                   float value) {
    const bool pools = !isSingle(cells);
    PointFacts facts;
    facts.token = key;
    if (pools)
        facts.rows = {{data.rowsAreKeys ? "keys down" : "queries", rangeText(cells.firstQuery, cells.lastQuery)},
                      {"keys", rangeText(cells.firstKey, cells.lastKey)},
                      {fmt::format("{}{}",
                                   data.isDifference ? "difference of the largest weights"
                                                     : std::string("largest ") + data.valueName(),
                                   data.sampled ? ", sampled rows" : ""),
                       cellText(value)}};
    else
        facts.rows = {{data.rowsAreKeys ? "key down" : "query", quotedToken(input, cells.firstQuery)},
                      {"key", quotedToken(input, key)},
                      {data.valueName(), cellText(value)}};
    if (const std::string rank = std::isnan(value) ? "" : rankInRow(input, data, cells); !rank.empty())
        facts.rows.emplace_back("rank in its row, from 1", rank);
    for (const PaneData& pane : input.panes)
        if (pane.result)
            facts.rows.emplace_back(letteredName(pane),
                                    pools ? keptText(input, pane, cells) : decisionText(input, pane, key));
    // A click on the locked cell unlocks it. Masked cells cannot be locked: they have no values.
    if (data.locked && holds(cells, *data.locked))
        facts.settingChange = lockOf(std::nullopt);
    else if (!std::isnan(value))
        facts.settingChange = lockOf(cells);
    return facts;
}

constexpr double kLeastMinimap = 56, kMostMinimap = 112, kMargin = 6;

/// The captured cells as a rectangle of keys and queries.
Viewport::Range capturedRange(const AttentionMapData& data) {
    const auto n = static_cast<double>(data.numTokens);
    return {0, n, static_cast<double>(data.firstQuery), n};
}

Box intersection(const Box& a, const Box& b) {
    const double x = std::max(a.x, b.x), y = std::max(a.y, b.y);
    return {x, y, std::min(a.right(), b.right()) - x, std::min(a.bottom(), b.bottom()) - y};
}

bool overlap(const Box& a, const Box& b) {
    const Box both = intersection(a, b);
    return both.width > 0 && both.height > 0;
}

Box boxOf(const PlotFrame& frame, const Viewport::Range& range) {
    const Point from = frame.toPixels(range.xMin, range.yMin), to = frame.toPixels(range.xMax, range.yMax);
    return {from.x, from.y, to.x - from.x, to.y - from.y};
}

/// Draws the overview in a box. For the row-normalised scale its rows use the largest cells of the shown map's rows.
void drawCoarse(SceneBuilder& builder, const Box& box, const AttentionMapData& data, const MapScale& scale,
                const Theme& theme) {
    const std::int64_t rows = data.overview->shape[0], columns = data.overview->shape[1];
    const std::string key = scale.key() + "coarse " + std::to_string(static_cast<int>(theme.id));
    auto pixels = data.memo.get("coarse", key, [&] {
        auto made = std::make_shared<std::vector<std::uint8_t>>();
        for (std::int64_t y = 0; y < rows; ++y)
            for (std::int64_t x = 0; x < columns; ++x) {
                const float cell = data.overview->data[y * columns + x];
                const std::int64_t row = y * data.cells.shape[0] / rows;
                const Colour c = std::isnan(cell)
                                     ? theme.masked
                                     : colourMap(scale.colourMapName(), scale.place(cell, row), scale.inverted());
                made->insert(made->end(), {c.r, c.g, c.b, 255});
            }
        return made;
    });
    builder.scene().items.push_back(
        ImageItem{box, static_cast<int>(columns), static_cast<int>(rows), std::move(pixels), {}});
}

void drawHatch(SceneBuilder& builder, const Box& box, const Theme& theme) {
    constexpr double pitch = 8;
    builder.pushClip(box);
    // The lines pass through the same points wherever the box begins, so that they stand still while the map is moved.
    for (double at = std::floor((box.x + box.y) / pitch) * pitch; at < box.right() + box.bottom(); at += pitch)
        for (const Stroke& stroke :
             {Stroke{withAlpha(theme.casing, 0.55), 2.5, {}}, Stroke{withAlpha(theme.ink, 0.45), 1, {}}})
            builder.line({at - box.y, box.y}, {at - box.bottom(), box.bottom()}, stroke);
    builder.popClip();
}

/// The minimap's box: beside or below the map where there is room, else in the first corner that the magnified cells
/// leave free. Nothing where the minimap would cover much of a small map.
std::optional<Box> placeOfMinimap(const MapLayout& layout, const AttentionMapData& data, const Viewport& viewport,
                                  const std::optional<Box>& inset) {
    const Box& plot = layout.frame.plot;
    const Viewport::Range all = capturedRange(data);
    const double side = std::clamp(0.24 * std::min(plot.width, plot.height), kLeastMinimap, kMostMinimap),
                 height = std::max(16.0, side * (all.yMax - all.yMin) / (all.xMax - all.xMin));
    const double beside = std::max({layout.column.right(), layout.sideRail.right(),
                                    layout.captionBeside ? layout.caption.right() : 0.0}) +
                          2 * kMargin;
    std::vector<Box> places;
    if (beside + side + kMargin <= viewport.width && height <= plot.height)
        places.push_back({beside, plot.bottom() - height, side, height});
    constexpr double kAxis = 46; // with its title
    if (plot.bottom() + kAxis + height + kMargin <= viewport.height)
        places.push_back({plot.right() - side, plot.bottom() + kAxis, side, height});
    if (places.empty() && std::min(plot.width, plot.height) < 2.5 * side) return std::nullopt;
    const double left = plot.x + kMargin, right = plot.right() - kMargin - side, top = plot.y + kMargin,
                 bottom = plot.bottom() - kMargin - height;
    for (const Point corner : {Point{right, top}, {left, bottom}, {left, top}, {right, bottom}})
        places.push_back({corner.x, corner.y, side, height});
    for (const Box& place : places)
        if (!inset || !overlap(place, *inset)) return place;
    return places.front();
}

/// A part of the map in pixels of the minimap, never too small to be seen.
Box partOf(const Box& minimap, const Viewport::Range& all, const Viewport::Range& shown) {
    const double perKey = minimap.width / (all.xMax - all.xMin), perQuery = minimap.height / (all.yMax - all.yMin);
    Box part{minimap.x + (shown.xMin - all.xMin) * perKey, minimap.y + (shown.yMin - all.yMin) * perQuery,
             (shown.xMax - shown.xMin) * perKey, (shown.yMax - shown.yMin) * perQuery};
    constexpr double least = 6;
    const Box seen = intersection(part, minimap);
    part = {seen.x, seen.y, std::max(0.0, seen.width), std::max(0.0, seen.height)};
    if (part.width < least) part = {part.centre().x - least / 2, part.y, least, part.height};
    if (part.height < least) part = {part.x, part.centre().y - least / 2, part.width, least};
    return part;
}

} // namespace

PointFacts mapFactsAt(const ViewInput& input, const AttentionMapData& data, const Scene& scene, Point at) {
    if (const auto cell = magnifiedCellAt(data, scene, at)) {
        const auto [query, key] = *cell;
        return factsOf(input, data, {query, query, key, key}, key, data.locked->at(query, key));
    }
    for (const std::optional<Box>& over : {insetOf(scene), boxOfPick(scene, kMinimap)})
        if (over && over->contains(at)) return {};
    if (!scene.plot.contains(at)) return {};
    const auto [key, row] = scene.dataAt(at);
    const auto pixel = pixelAt(data, key, row);
    if (!pixel) return {};
    return factsOf(input, data, *pixel, static_cast<TokenIndex>(key), data.cells.data[indexOf(data, *pixel)]);
}

ViewTable mapTable(std::shared_ptr<const AttentionMapData> data) {
    const std::vector<std::string> columns = {"query from", "query to", "key from", "key to",
                                              data && data->sampled ? "value (sampled rows)" : "value"};
    if (!data) return tableOf(columns, {});
    const auto text = [](const MapCell& cell, float value) -> std::vector<std::string> {
        return {std::to_string(cell.firstQuery), std::to_string(cell.lastQuery), std::to_string(cell.firstKey),
                std::to_string(cell.lastKey), std::isnan(value) ? "masked" : fmt::format("{:.6g}", value)};
    };
    const std::int64_t magnified = data->locked ? data->locked->cells.shape.count() : 0;
    return tableOf(columns, magnified + data->cells.shape.count(), [data, magnified, text](std::int64_t index) {
        if (index < magnified) {
            const MapNeighbourhood& around = *data->locked;
            const auto query = static_cast<TokenIndex>(around.rowBegin + index / around.cells.shape[1]);
            const auto key = static_cast<TokenIndex>(around.keyBegin + index % around.cells.shape[1]);
            return text({query, query, key, key}, around.at(query, key));
        }
        const std::int64_t pixel = index - magnified, width = data->cells.shape[1];
        return text(pixelOf(*data, pixel % width, pixel / width), data->cells.data[pixel]);
    });
}

void drawUncomputed(SceneBuilder& builder, const MapLayout& layout, const AttentionMapData& data, const MapScale& scale,
                    const Theme& theme) {
    const PlotFrame& frame = layout.frame;
    const Box captured = boxOf(frame, capturedRange(data)), seen = intersection(captured, frame.plot);
    const Box computed =
        intersection(boxOf(frame, {static_cast<double>(data.keyBegin), static_cast<double>(data.keyEnd),
                                   static_cast<double>(data.rowBegin), static_cast<double>(data.rowEnd)}),
                     frame.plot);
    if (seen.width <= 0 || seen.height <= 0) return;
    const auto reaches = [](double a, double b) { return a <= b + 0.5; };
    if (reaches(computed.x, seen.x) && reaches(computed.y, seen.y) && reaches(seen.right(), computed.right()) &&
        reaches(seen.bottom(), computed.bottom()))
        return;
    if (data.overview)
        drawCoarse(builder, captured, data, scale, theme);
    else
        builder.rectangle(seen, theme.sunken);
    drawHatch(builder, seen, theme);
}

void drawMinimap(SceneBuilder& builder, const MapLayout& layout, const AttentionMapData& data, const MapScale& scale,
                 const ViewInput& input, const Viewport& viewport) {
    if (!viewport.range || viewport.forExport || !data.overview) return;
    const Viewport::Range all = capturedRange(data);
    const std::optional<Box> place = placeOfMinimap(layout, data, viewport, insetOf(builder.scene()));
    if (!place) return;
    const Box& box = *place;
    const Theme& theme = themeOf(viewport.theme);
    builder.rectangle(box.grown(3), theme.casing);
    drawCoarse(builder, box, data, scale, theme);
    builder.pushClip(box);
    const double cutX = box.x + (input.cut.token - all.xMin) / (all.xMax - all.xMin) * box.width,
                 cutY = box.y + (input.cut.token - all.yMin) / (all.yMax - all.yMin) * box.height;
    builder.line({cutX, box.y}, {cutX, box.bottom()}, {theme.ink, 1, {3, 2}});
    builder.line({box.x, cutY}, {box.right(), cutY}, {theme.ink, 1, {3, 2}});
    const Box part = partOf(box, all, *viewport.range);
    builder.rectangle(part, kTransparent, {theme.casing, 4, {}});
    builder.rectangle(part, kTransparent, {theme.ink, 2, {}});
    builder.popClip();
    builder.rectangle(box, kTransparent, {theme.axis, 1, {}}, 0, kMinimap);
}

std::optional<SettingChange> movedOnMinimap(const AttentionMapData& data, const Scene& scene, Point at) {
    const std::optional<Box> box = boxOfPick(scene, kMinimap);
    if (!box) return std::nullopt;
    const Viewport::Range all = capturedRange(data);
    const auto around = [](double middle, double span, double low, double high) {
        const double from = std::clamp(middle - span / 2, low, std::max(low, high - span));
        return std::pair{from, from + span};
    };
    const auto [xMin, xMax] = around(all.xMin + (at.x - box->x) / box->width * (all.xMax - all.xMin),
                                     scene.xMax - scene.xMin, all.xMin, all.xMax);
    const auto [yMin, yMax] = around(all.yMin + (at.y - box->y) / box->height * (all.yMax - all.yMin),
                                     scene.yMax - scene.yMin, all.yMin, all.yMax);
    return SettingChange{.step = "Pan", .range = ShownRange{xMin, xMax, yMin, yMax}};
}

} // namespace kvscope
