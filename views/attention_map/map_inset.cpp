// The magnified neighbourhood of the locked cell: single cells, where a pixel of the map is the maximum of many.
#include "views/attention_map/map_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace kvscope {

namespace {

constexpr PickId kGround{PickId::Kind::Legend, 300}, kGrid{PickId::Kind::Cell, -300};
constexpr double kPadding = 8, kHeading = 15, kQueryTexts = 58, kKeyTexts = 52;
constexpr double kLeastCell = 9, kLeastBareCell = 5, kMostCell = 40, kCellWithNumber = 29;

constexpr double kLeastWide = 190; // of an inset whose headings name the tokens

/// What the inset holds besides the cells.
struct Mode {
    bool texts = false; ///< the tokens' texts beside the cells
    std::vector<std::string> headings;
    double least = 0;  ///< room that the numbers in the headings need: a number that is cut reads as another one
    double ground = 0; ///< least width of the inset
};

/// The parts of the inset; `cell` is 0 where the inset does not fit.
struct Inset {
    Box ground, grid;
    double cell = 0;
    Mode mode{};
};

/// Room for the inset, and whether the inset is aligned to its right side.
struct Room {
    Box box;
    bool atRight = false;
};

Inset fitted(const Room& place, const MapNeighbourhood& around, const Mode& mode) {
    const auto& [room, atRight] = place;
    const bool texts = mode.texts;
    const auto columns = static_cast<double>(around.cells.shape[1]), rows = static_cast<double>(around.cells.shape[0]);
    const double left = texts ? kQueryTexts : 0,
                 top = kHeading * static_cast<double>(mode.headings.size()) + (texts ? kKeyTexts : 4);
    if (room.width - 2 * kPadding < mode.least) return {};
    Inset inset;
    inset.mode = mode;
    inset.cell = std::floor(
        std::min({kMostCell, (room.width - 2 * kPadding - left) / columns, (room.height - 2 * kPadding - top) / rows}));
    if (inset.cell < (texts ? kLeastCell : kLeastBareCell)) return {};
    // The headings may be wider than the grid.
    const double width = std::min(room.width, std::max(2 * kPadding + left + inset.cell * columns, mode.ground));
    inset.ground = {atRight ? room.right() - width : room.x, room.y, width, 2 * kPadding + top + inset.cell * rows};
    inset.grid = {inset.ground.x + kPadding + left, room.y + kPadding + top, inset.cell * columns, inset.cell * rows};
    return inset;
}

/// Whether only masked cells of the map lie in the box.
bool isMasked(const MapLayout& layout, const AttentionMapData& data, const Box& box) {
    const PlotFrame& frame = layout.frame;
    const auto cells = [](double from, double to, std::int64_t begin, std::int64_t end, std::int64_t count) {
        const double per = static_cast<double>(count) / static_cast<double>(end - begin);
        return std::pair{
            std::clamp<std::int64_t>(std::llround(std::floor((from - static_cast<double>(begin)) * per)), 0, count),
            std::clamp<std::int64_t>(std::llround(std::ceil((to - static_cast<double>(begin)) * per)), 0, count)};
    };
    const auto [left, right] =
        cells(frame.xAt(box.x), frame.xAt(box.right()), data.keyBegin, data.keyEnd, data.cells.shape[1]);
    const auto [top, bottom] =
        cells(frame.yAt(box.y), frame.yAt(box.bottom()), data.rowBegin, data.rowEnd, data.cells.shape[0]);
    for (std::int64_t y = top; y < bottom; ++y)
        for (std::int64_t x = left; x < right; ++x)
            if (!std::isnan(data.cells.data[y * data.cells.shape[1] + x])) return false;
    return true;
}

/// The room to the right of everything else.
Room roomBeside(const MapLayout& layout, const Viewport& viewport, double width) {
    const double margin = layout.captionBeside ? 3 : 6,
                 top = layout.captionBeside ? margin : layout.caption.bottom() + 4;
    const double bottom = viewport.height - (viewport.forExport ? 24 : margin);
    return {{viewport.width - 8 - width, top, width, bottom - top}, false};
}

double widthBeside(const MapLayout& layout, const Viewport& viewport) {
    const double taken =
        std::max({layout.column.right(), layout.sideRail.right(), layout.captionBeside ? layout.caption.right() : 0.0});
    return viewport.width - 8 - (taken + 10);
}

/// The largest inset over the masked corner of a causal map; a higher corner is a narrower one.
Inset overMasked(const MapLayout& layout, const AttentionMapData& data, const Mode& mode) {
    const Box& plot = layout.frame.plot;
    std::vector<Inset> fitting;
    for (double share = 0.8; share > 0.19; share -= 0.05) {
        const Box corner{plot.x + share * plot.width + 3, plot.y + 3, (1 - share) * plot.width - 6,
                         share * plot.height - 6};
        if (const Inset inset = fitted({corner, true}, *data.locked, mode); inset.cell > 0) fitting.push_back(inset);
    }
    std::ranges::stable_sort(fitting, std::greater<>(), &Inset::cell);
    for (const Inset& inset : fitting)
        if (isMasked(layout, data, inset.ground)) return inset;
    return {};
}

/// The corner of the plot that is farthest from the locked cell.
Room farthestCorner(const MapLayout& layout, const MapNeighbourhood& around) {
    const Box& plot = layout.frame.plot;
    const Point cell = layout.frame.toPixels(around.key, around.query);
    const double width = 0.48 * plot.width, height = 0.48 * plot.height;
    const bool isLeft = cell.x < plot.x + plot.width / 2, isAbove = cell.y < plot.y + plot.height / 2;
    return {{isLeft ? plot.right() - width - 3 : plot.x + 3, isAbove ? plot.bottom() - height - 3 : plot.y + 3, width,
             height},
            isLeft};
}

std::string valueWords(const AttentionMapData& data) {
    const MapNeighbourhood& around = *data.locked;
    std::string words = std::string(data.valueName()) + " " + cellText(around.value());
    if (around.rank > 0) words += fmt::format(" · rank {} of {}", formatCount(around.rank), formatCount(around.seen));
    return words;
}

/// One line each for the cell, its value, and who keeps the key.
std::vector<std::string> wideHeadings(const ViewInput& input, const AttentionMapData& data) {
    const MapNeighbourhood& around = *data.locked;
    std::vector<std::string> headings = {fmt::format("{} {} → key {}", data.rowsAreKeys ? "key" : "query",
                                                     quotedToken(input, around.query), quotedToken(input, around.key)),
                                         valueWords(data)};
    std::string kept;
    for (const PaneData& pane : input.panes)
        if (pane.result) {
            const TokenState state = tokenStates(input, pane)[around.key];
            kept += fmt::format("{}{} {}", kept.empty() ? "key: " : " · ", pane.letter, stateName(state));
        }
    if (!kept.empty()) headings.push_back(kept);
    return headings;
}

/// The same in short lines without the tokens' texts.
std::vector<std::string> narrowHeadings(const ViewInput& input, const AttentionMapData& data) {
    const MapNeighbourhood& around = *data.locked;
    std::vector<std::string> headings = {
        fmt::format("{} {}", data.rowsAreKeys ? "key" : "query", formatCount(around.query)),
        "key " + formatCount(around.key), std::string(data.valueName()) + " " + cellText(around.value())};
    if (around.rank > 0) headings.push_back("rank " + formatCount(around.rank));
    std::string keepers;
    bool isSeen = false;
    for (const PaneData& pane : input.panes)
        if (pane.result) {
            const TokenState state = tokenStates(input, pane)[around.key];
            isSeen = isSeen || state != TokenState::AfterCut;
            if (isKept(state)) keepers += std::string(" ") + pane.letter;
        }
    if (isSeen) headings.push_back(keepers.empty() ? "kept by none" : "kept by" + keepers);
    return headings;
}

TextStyle headingStyle(std::size_t line) {
    return {FontFace::Interface, 11, line == 0 ? FontWeight::SemiBold : FontWeight::Regular};
}

/// The first `count` lines; `whole` of them must not be cut.
Mode modeOf(bool texts, const std::vector<std::string>& lines, std::size_t count, std::size_t whole,
            const TextService& text) {
    Mode mode{texts, {lines.begin(), lines.begin() + static_cast<std::ptrdiff_t>(std::min(count, lines.size()))}};
    for (std::size_t line = 0; line < std::min(whole, mode.headings.size()); ++line)
        mode.least = std::max(mode.least, std::ceil(text.measure(mode.headings[line], headingStyle(line)).width) + 1);
    mode.ground = mode.least + 2 * kPadding;
    return mode;
}

/// From the most informative mode to the smallest. Numbers are whole in all of them.
std::array<Mode, 7> modesOf(const ViewInput& input, const AttentionMapData& data, const TextService& text) {
    const std::vector<std::string> wide = wideHeadings(input, data), narrow = narrowHeadings(input, data);
    std::array<Mode, 7> modes = {modeOf(true, wide, 3, 2, text),    modeOf(false, wide, 3, 2, text),
                                 modeOf(true, narrow, 3, 3, text),  modeOf(false, narrow, 5, 5, text),
                                 modeOf(false, narrow, 3, 3, text), modeOf(false, wide, 1, 1, text),
                                 modeOf(false, narrow, 2, 2, text)};
    for (const std::size_t ofWide : {0, 1, 5}) modes[ofWide].ground = std::max(modes[ofWide].ground, kLeastWide);
    return modes;
}

/// Prefers a smaller inset beside the map or over its masked corner to a larger one that hides cells.
Inset placed(const MapLayout& layout, const AttentionMapData& data, const Viewport& viewport,
             const std::array<Mode, 7>& modes) {
    const Room beside = roomBeside(layout, viewport, widthBeside(layout, viewport));
    for (const Mode& mode : modes) {
        const Inset masked = overMasked(layout, data, mode), free = fitted(beside, *data.locked, mode);
        if (masked.cell > 0 || free.cell > 0) return free.cell > masked.cell ? free : masked;
    }
    for (const Mode& mode : modes)
        if (const Inset inset = fitted(farthestCorner(layout, *data.locked), *data.locked, mode); inset.cell > 0)
            return inset;
    return {};
}

/// Short enough for a cell: ".03", "4e−4", "−1.2"; "≈0" below 1e−9.
std::string shortNumber(float cell) {
    const double value = static_cast<double>(cell), magnitude = std::abs(value);
    const std::string sign = value < 0 ? "−" : "";
    if (magnitude >= 0.995 || magnitude == 0) return formatFixed(value, magnitude == 0 || magnitude >= 10 ? 0 : 1);
    if (magnitude >= 0.01) return sign + formatFixed(magnitude, 2).substr(1);
    const std::string digits = fmt::format("{:.0e}", magnitude); // "4e-04": a mantissa that rounds to 10 is 1
    const int exponent = std::stoi(digits.substr(3));
    return exponent > 9 ? "≈0" : fmt::format("{}{}e−{}", sign, digits.front(), exponent);
}

void drawCells(SceneBuilder& builder, const Inset& inset, const AttentionMapData& data, const MapScale& scale,
               const Theme& theme) {
    const MapNeighbourhood& around = *data.locked;
    const std::int64_t rows = around.cells.shape[0], columns = around.cells.shape[1];
    std::vector<Colour> colours;
    for (std::int64_t y = 0; y < rows; ++y) {
        // The colours are the map's: a row-normalised scale knows only the rows of the map's pixels.
        const std::int64_t shown = std::clamp(around.rowBegin + y, data.rowBegin, data.rowEnd - 1) - data.rowBegin;
        const std::int64_t pixelRow = shown * data.cells.shape[0] / (data.rowEnd - data.rowBegin);
        for (std::int64_t x = 0; x < columns; ++x) {
            const float cell = around.at(around.rowBegin + y, around.keyBegin + x);
            colours.push_back(std::isnan(cell)
                                  ? theme.masked
                                  : colourMap(scale.colourMapName(), scale.place(cell, pixelRow), scale.inverted()));
        }
    }
    builder.image(inset.grid, columns, rows, colours);
    const TextStyle number{FontFace::Monospace, 10};
    for (std::int64_t y = 0; y < rows && inset.cell >= kCellWithNumber; ++y)
        for (std::int64_t x = 0; x < columns; ++x)
            if (const float cell = around.at(around.rowBegin + y, around.keyBegin + x); !std::isnan(cell))
                builder.label({inset.grid.x + inset.cell * (static_cast<double>(x) + 0.5),
                               inset.grid.y + inset.cell * (static_cast<double>(y) + 0.5)},
                              shortNumber(cell), number, textOn(colours[y * columns + x]), HorizontalAlign::Centre);
    builder.rectangle(inset.grid, kTransparent, {theme.axis, 1, {}}, 0, kGrid);
    const Box own{inset.grid.x + inset.cell * static_cast<double>(around.key - around.keyBegin),
                  inset.grid.y + inset.cell * static_cast<double>(around.query - around.rowBegin), inset.cell,
                  inset.cell};
    builder.rectangle(own, kTransparent, {theme.casing, 4, {}});
    builder.rectangle(own, kTransparent, {theme.ink, 2, {}});
}

void drawTokenTexts(SceneBuilder& builder, const Inset& inset, const MapNeighbourhood& around, const ViewInput& input,
                    const Theme& theme) {
    const TokenTable& tokens = input.capture->tokens();
    const auto styleOf = [](bool own) {
        return TextStyle{FontFace::Interface, 10, own ? FontWeight::SemiBold : FontWeight::Regular};
    };
    for (std::int64_t x = 0; x < around.cells.shape[1]; ++x) {
        const auto key = static_cast<TokenIndex>(around.keyBegin + x);
        const TextStyle style = styleOf(key == around.key);
        builder.text({inset.grid.x + inset.cell * (static_cast<double>(x) + 0.5), inset.grid.y - 4},
                     builder.elide(displayText(tokens.textOf(key)), style, kKeyTexts - 8), style,
                     key == around.key ? theme.text1 : theme.text2, HorizontalAlign::Left, VerticalAlign::Middle, -90);
    }
    for (std::int64_t y = 0; y < around.cells.shape[0]; ++y) {
        const auto query = static_cast<TokenIndex>(around.rowBegin + y);
        const TextStyle style = styleOf(query == around.query);
        builder.label({inset.grid.x - 4, inset.grid.y + inset.cell * (static_cast<double>(y) + 0.5)},
                      builder.elide(displayText(tokens.textOf(query)), style, kQueryTexts - 8), style,
                      query == around.query ? theme.text1 : theme.text2, HorizontalAlign::Right);
    }
}

/// Frames the neighbourhood on the map, with a cross-hair that stops at the frame.
void drawFrame(SceneBuilder& builder, const PlotFrame& frame, const MapNeighbourhood& around, const Theme& theme) {
    const Point from = frame.toPixels(around.keyBegin, around.rowBegin);
    const Point to = frame.toPixels(around.keyBegin + around.cells.shape[1], around.rowBegin + around.cells.shape[0]);
    const Point at = frame.toPixels(static_cast<double>(around.key) + 0.5, static_cast<double>(around.query) + 0.5);
    constexpr double least = 9; // smallest side of a frame that can be seen
    const double width = std::max(least, to.x - from.x), height = std::max(least, to.y - from.y);
    const Box box{std::min(from.x, at.x - least / 2), std::min(from.y, at.y - least / 2), width, height};
    const Box& plot = frame.plot;
    builder.pushClip(plot);
    for (const Stroke& stroke : {Stroke{theme.casing, 3, {}}, Stroke{theme.ink, 1, {}}}) {
        builder.line({plot.x, at.y}, {box.x, at.y}, stroke);
        builder.line({box.right(), at.y}, {plot.right(), at.y}, stroke);
        builder.line({at.x, plot.y}, {at.x, box.y}, stroke);
        builder.line({at.x, box.bottom()}, {at.x, plot.bottom()}, stroke);
        builder.rectangle(box, kTransparent, stroke);
    }
    builder.popClip();
}

} // namespace

SettingChange lockOf(const std::optional<MapCell>& cell) {
    return {.options = {{"cell", cell ? cell->text() : "none"}}, .step = cell ? "Lock cell" : "Release cell"};
}

std::string cellText(float value) { return std::isnan(value) ? "masked" : formatShort(value); }

double widthForInset(const MapLayout& layout, const AttentionMapData& data, const ViewInput& input,
                     const Viewport& viewport) {
    if (!data.locked) return 0;
    const auto modes = modesOf(input, data, *viewport.text);
    if (overMasked(layout, data, modes.front()).cell > 0) return 0;
    const Box& plot = layout.frame.plot;
    const double most = std::min(0.45 * viewport.width, plot.width - 1.5 * plot.height);
    for (const Mode& mode : modes)
        if (const Inset inset = fitted(roomBeside(layout, viewport, most), *data.locked, mode); inset.cell > 0)
            return inset.ground.width + 10;
    return 0;
}

std::string lockedSentence(const ViewInput& input, const AttentionMapData& data) {
    const MapNeighbourhood& around = *data.locked;
    return fmt::format("{} {}, key {}: {}", data.rowsAreKeys ? "Key" : "Query", quotedToken(input, around.query),
                       quotedToken(input, around.key), valueWords(data));
}

void drawLockedCell(SceneBuilder& builder, const MapLayout& layout, const AttentionMapData& data, const MapScale& scale,
                    const ViewInput& input, const Viewport& viewport) {
    if (!data.locked) return;
    const Theme& theme = themeOf(viewport.theme);
    drawFrame(builder, layout.frame, *data.locked, theme);
    const Inset inset = placed(layout, data, viewport, modesOf(input, data, *viewport.text));
    if (inset.cell == 0) return;
    builder.rectangle(inset.ground, theme.raised, {theme.control, 1, {}}, 4, kGround);
    for (std::size_t line = 0; line < inset.mode.headings.size(); ++line) {
        const TextStyle style = headingStyle(line);
        builder.label(
            {inset.ground.x + kPadding, inset.ground.y + kPadding + kHeading * (static_cast<double>(line) + 0.5)},
            builder.elide(inset.mode.headings[line], style, inset.ground.width - 2 * kPadding), style,
            line == 0 ? theme.text1 : theme.text2);
    }
    drawCells(builder, inset, data, scale, theme);
    if (inset.mode.texts) drawTokenTexts(builder, inset, *data.locked, input, theme);
}

std::optional<Box> insetOf(const Scene& scene) { return boxOfPick(scene, kGround); }

std::optional<std::pair<TokenIndex, TokenIndex>> magnifiedCellAt(const AttentionMapData& data, const Scene& scene,
                                                                 Point at) {
    const std::optional<Box> grid = boxOfPick(scene, kGrid);
    if (!grid || !data.locked || !grid->contains(at)) return std::nullopt;
    const HostTensor& cells = data.locked->cells;
    const auto column = static_cast<std::int64_t>((at.x - grid->x) / grid->width * static_cast<double>(cells.shape[1]));
    const auto row = static_cast<std::int64_t>((at.y - grid->y) / grid->height * static_cast<double>(cells.shape[0]));
    return std::pair{static_cast<TokenIndex>(data.locked->rowBegin + row),
                     static_cast<TokenIndex>(data.locked->keyBegin + column)};
}

} // namespace kvscope
