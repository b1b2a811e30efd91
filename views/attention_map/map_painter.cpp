// The parts of the attention map: one image, thin rails of kept tokens along its edges, and lines over it.
#include "views/attention_map/map_picture.h"

#include "core/run/run.h"
#include "views/common/pane_identity.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

namespace kvscope {

namespace {

constexpr double kMarginalDecades = 4; // shown below the largest column sum

/// Row and column of a cell; row -1: there is none, since all are masked.
struct CellPlace {
    std::int64_t row = -1, column = 0;
};

/// The cell of largest value (of a difference: largest magnitude) among those that fall on one image pixel. Pooling by
/// maximum twice is pooling by maximum once, so nothing is lost where the image is smaller.
CellPlace pooled(const AttentionMapData& data, std::int64_t top, std::int64_t bottom, std::int64_t left,
                 std::int64_t right) {
    CellPlace place;
    float best = 0;
    for (std::int64_t y = top; y < bottom; ++y)
        for (std::int64_t x = left; x < right; ++x) {
            const float cell = data.cells.data[y * data.cells.shape[1] + x];
            const bool larger = place.row < 0 || (data.isDifference ? std::abs(cell) > std::abs(best) : cell > best);
            if (std::isnan(cell) || !larger) continue;
            place = {y, x};
            best = cell;
        }
    return place;
}

/// The cell at which each pixel of an image begins, and the end of the last one.
std::vector<std::int64_t> pixelBounds(std::int64_t cells, std::int64_t pixels) {
    std::vector<std::int64_t> bounds;
    for (std::int64_t i = 0; i <= pixels; ++i) bounds.push_back(cells * i / pixels);
    return bounds;
}

using Pixels = std::vector<std::uint8_t>;

std::shared_ptr<Pixels> pixelsOf(const AttentionMapData& data, const MapScale& scale, std::int64_t rows,
                                 std::int64_t columns, const Theme& theme) {
    const std::int64_t height = data.cells.shape[0], width = data.cells.shape[1];
    std::vector<Colour> colours; // a colour map has no more than 256 entries
    for (int i = 0; i < 256; ++i) colours.push_back(colourMap(scale.colourMapName(), i / 255.0, scale.inverted()));
    const std::vector<std::int64_t> x = pixelBounds(width, columns), y = pixelBounds(height, rows);
    auto pixels = std::make_shared<Pixels>(static_cast<std::size_t>(4 * rows * columns), 255);
    std::uint8_t* out = pixels->data();
    for (std::size_t j = 0; j + 1 < y.size(); ++j)
        for (std::size_t i = 0; i + 1 < x.size(); ++i, out += 4) {
            const CellPlace cell = pooled(data, y[j], y[j + 1], x[i], x[i + 1]);
            const Colour c =
                cell.row < 0 ? theme.masked
                             : colours[static_cast<std::size_t>(255 * scale.placeOfCell(cell.row, cell.column) + 0.5)];
            out[0] = c.r, out[1] = c.g, out[2] = c.b;
        }
    return pixels;
}

/// Equal pictures share their pixels, because the texture cache finds a texture by the address of its pixels.
ImageItem imageOf(const AttentionMapData& data, const MapScale& scale, const MapImage& place, const Theme& theme) {
    ImageItem image;
    image.box = place.box;
    image.width = static_cast<int>(place.columns);
    image.height = static_cast<int>(place.rows);
    image.pick = {PickId::Kind::Cell, 0};
    const std::string key =
        scale.key() + fmt::format("{}x{} {}", place.columns, place.rows, static_cast<int>(theme.id));
    image.rgba = data.memo.get("pixels", key, [&] { return pixelsOf(data, scale, place.rows, place.columns, theme); });
    return image;
}

/// Kept tokens of a pane per pixel of a rail from `low` to `high`, as a share of the tokens there.
std::vector<double> keptShares(const ViewInput& input, const PaneData& pane, double low, double high,
                               std::size_t pixels) {
    const std::vector<TokenIndex>& kept = keptTokens(input, pane);
    // The first token whose middle lies on a pixel or to the right of it, by bisection.
    const auto beginOf = [&](std::size_t pixel) {
        TokenIndex begin = 0, end = static_cast<TokenIndex>(pane.result->visible);
        while (begin < end) {
            const TokenIndex token = begin + (end - begin) / 2;
            const double at = (token + 0.5 - low) / (high - low) * static_cast<double>(pixels);
            at < static_cast<double>(pixel) ? begin = token + 1 : end = token;
        }
        return begin;
    };
    std::vector<double> shares;
    TokenIndex begin = beginOf(0);
    auto next = std::ranges::lower_bound(kept, begin);
    for (std::size_t i = 0; i < pixels; ++i) {
        const TokenIndex end = beginOf(i + 1);
        const auto last = std::lower_bound(next, kept.end(), end);
        // A pixel without the middle of a token, where tokens are wider than pixels, shows the token in which it lies.
        const double at = std::floor(low + (static_cast<double>(i) + 0.5) / static_cast<double>(pixels) * (high - low));
        const bool isKept = at >= 0 && std::ranges::binary_search(kept, at);
        shares.push_back(begin == end ? (isKept ? 1 : 0)
                                      : static_cast<double>(last - next) / static_cast<double>(end - begin));
        begin = end, next = last;
    }
    return shares;
}

/// `along`: the rail runs along x; else along y.
void drawRail(SceneBuilder& builder, const Box& box, bool along, const std::vector<double>& shares,
              const PaneIdentity& identity, const Theme& theme) {
    const int count = static_cast<int>(shares.size()),
              across = identity.isRepeated() ? static_cast<int>(std::min(box.width, box.height)) : 1;
    const int width = along ? count : across, height = along ? across : count;
    std::vector<Colour> pixels;
    for (int y = 0; y < height; ++y)
        for (int x = 0; x < width; ++x) {
            const double share = identity.railHas(along ? y : x) ? shares[along ? x : y] : 0;
            pixels.push_back(share > 0 ? blend(withAlpha(identity.colour(), 0.2 + 0.8 * share), theme.sunken)
                                       : theme.sunken);
        }
    builder.image(box, width, height, pixels);
}

} // namespace

void drawMap(SceneBuilder& builder, const MapLayout& layout, const AttentionMapData& data, const MapScale& scale,
             double pixelScale, const Theme& theme) {
    const Box& plot = layout.frame.plot;
    builder.pushClip(plot);
    drawUncomputed(builder, layout, data, scale, theme);
    builder.scene().items.push_back(imageOf(data, scale, mapImageOf(layout, data, pixelScale), theme));
    builder.popClip();
    // The frame lies around the map: on the map it would hide the first key, where the sink is.
    builder.rectangle(plot.grown(1), kTransparent, {theme.axis, 1, {}});
}

void drawRails(SceneBuilder& builder, const MapLayout& layout, const ViewInput& input, const Theme& theme) {
    if (layout.rails.height <= 0) return;
    const TextStyle letter{FontFace::Interface, 10, FontWeight::SemiBold};
    double y = layout.rails.y;
    for (std::size_t i = 0; i < input.panes.size(); ++i) {
        const PaneData& pane = input.panes[i];
        const PaneIdentity identity = identityOf(input, pane, theme.id);
        const Box rail{layout.rails.x, y, layout.rails.width, layout.railHeight};
        if (layout.railLetters)
            builder.label({rail.x - 5, y + rail.height / 2}, std::string(1, pane.letter), letter, theme.text2,
                          HorizontalAlign::Right);
        y += layout.railHeight + layout.railGap;
        if (!pane.result) continue;
        const auto along = static_cast<std::size_t>(std::max(1.0, rail.width));
        drawRail(builder, rail, true, keptShares(input, pane, layout.frame.x.low, layout.frame.x.high, along), identity,
                 theme);
        if (std::cmp_not_equal(i, input.activePane) || layout.sideRail.width <= 0) continue;
        const auto down = static_cast<std::size_t>(std::max(1.0, layout.sideRail.height));
        drawRail(builder, layout.sideRail, false,
                 keptShares(input, pane, layout.frame.y.high, layout.frame.y.low, down), identity, theme);
        builder.text({layout.sideRail.x + layout.sideRail.width / 2, layout.sideRail.y - 4},
                     std::string(1, pane.letter), letter, theme.text2, HorizontalAlign::Centre);
    }
}

void drawMarginal(SceneBuilder& builder, const MapLayout& layout, const AttentionMapData& data, const Theme& theme) {
    const Box& box = layout.marginal;
    if (box.height <= 0 || data.columnSums.empty()) return;
    const std::vector<float>& sums = data.columnSums.data;
    const float highest = *std::ranges::max_element(sums);
    std::vector<Point> points;
    for (std::size_t i = 0; i < sums.size() && highest > 0; ++i) {
        const double key = static_cast<double>(data.keyBegin) + (static_cast<double>(i) + 0.5) *
                                                                    static_cast<double>(data.keyEnd - data.keyBegin) /
                                                                    static_cast<double>(sums.size());
        // Logarithmic, so that a sink does not flatten the rest.
        const double decades = sums[i] > 0 ? std::log10(static_cast<double>(sums[i] / highest)) / kMarginalDecades : -1;
        points.push_back(
            {layout.frame.toPixels(key, 0).x, box.bottom() - box.height * std::clamp(1 + decades, 0.0, 1.0)});
    }
    builder.pushClip({box.x, box.y - 1, box.width, box.height + 2});
    if (points.size() > 1) builder.polyline(std::move(points), {theme.text2, 1, {}});
    builder.popClip();
    builder.text({box.x - 5, box.bottom() - 2}, "lg Σ", {FontFace::Interface, 10}, theme.text2, HorizontalAlign::Right);
}

void drawMarks(SceneBuilder& builder, const MapLayout& layout, const ViewInput& input, const Theme& theme) {
    const PlotFrame& frame = layout.frame;
    builder.pushClip(frame.plot);
    for (const Stroke& stroke : {Stroke{theme.casing, 3, {}}, Stroke{theme.ink, 1, {5, 3}}}) {
        drawUpright(builder, frame, input.cut.token, stroke);
        drawAcross(builder, frame, input.cut.token, stroke);
    }
    if (input.focus.hovered >= 0)
        for (const Stroke& stroke : {Stroke{theme.casing, 3, {}}, Stroke{theme.ink, 1, {}}})
            drawUpright(builder, frame, input.focus.hovered + 0.5, stroke);
    builder.popClip();
    // Selected tokens: ink ticks between rails and map, as wide as their cells but never invisible.
    builder.pushClip({frame.plot.x, frame.plot.y - 5, frame.plot.width, 5});
    for (auto run = input.focus.selected.begin();
         run != input.focus.selected.end();) { // ascending; neighbours share a tick, without a seam
        auto end = run + 1;
        while (end != input.focus.selected.end() && *end == *(end - 1) + 1) ++end;
        const double left = frame.toPixels(*run, 0).x, right = frame.toPixels(*(end - 1) + 1, 0).x;
        builder.rectangle({left, frame.plot.y - 4, std::max(1.0, right - left), 3}, theme.ink);
        run = end;
    }
    builder.popClip();
}

} // namespace kvscope
