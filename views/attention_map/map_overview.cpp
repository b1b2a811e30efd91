// The whole map in a coarse picture: under what is not computed yet, and as the small map that says where one is.
#include "views/attention_map/map_picture.h"

#include <algorithm>
#include <cmath>

namespace kvscope {

namespace {

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

/// The coarse picture in a box; its rows have no largest cells of their own, those of the map's nearest rows serve.
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
    // Through the same points wherever the box begins, so that the lines stand still while the map is moved.
    for (double at = std::floor((box.x + box.y) / pitch) * pitch; at < box.right() + box.bottom(); at += pitch)
        for (const Stroke& stroke :
             {Stroke{withAlpha(theme.casing, 0.55), 2.5, {}}, Stroke{withAlpha(theme.ink, 0.45), 1, {}}})
            builder.line({at - box.y, box.y}, {at - box.bottom(), box.bottom()}, stroke);
    builder.popClip();
}

/// Its box: beside or below the map where there is room, else in the first corner that the magnified cells leave free.
/// Nothing where it would cover much of a small map.
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

/// A part of the map in the pixels of the small map, never too small to be seen.
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
