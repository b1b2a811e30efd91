// The merge-and-reduce tree: filled boxes are the sets in memory, hollow ones were merged into their parents, dashed
// ones are still to come. Ticks in the batches are the pairs of the batch that are still in memory.
#include "views/merge_tree/tree_painter.h"

#include "views/common/balance_words.h"
#include "views/scene/axes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace kvscope {

namespace {

constexpr double kLeastPitch = 2.5;     // closer nodes are drawn as runs of equal state
constexpr std::size_t kMostPaths = 256; // selected tokens whose paths are drawn
constexpr double kFrame = 3;            // from the box of a set to the middle of the frame around it

bool isRun(const TreePicture& p, std::int64_t level) { return p.layout.pitchOf(p.state, level) < kLeastPitch; }

/// Nodes of a level that the plot shows, one more on each side.
std::pair<std::int64_t, std::int64_t> shownPlaces(const TreePicture& p, std::int64_t level) {
    const auto& rows = p.state.tree().rows;
    const std::int64_t count = p.state.nodeCount(level), batch = p.state.tree().batch;
    const std::int64_t each = level == 0 ? 1 : std::int64_t{1} << (level - 1);
    const auto placeAt = [&](double token) {
        const auto row = std::ranges::lower_bound(rows, token) - rows.begin();
        return row / batch / each;
    };
    return {std::max<std::int64_t>(0, placeAt(p.layout.xLow) - 1), std::min(count, placeAt(p.layout.xHigh) + 2)};
}

void paintGround(SceneBuilder& b, const TreePicture& p) {
    const Box& plot = p.layout.plot;
    const double x = std::clamp(p.layout.xOf(p.state.cursor()), plot.x, plot.right());
    if (x < plot.right()) b.rectangle({x, plot.y, plot.right() - x, plot.height}, p.theme.sunken);
    for (const double y : p.layout.rows) b.line({plot.x, y}, {plot.right(), y}, {p.theme.grid, 1, {}});
}

void paintEdge(SceneBuilder& b, const TreePicture& p, std::int64_t level, std::int64_t place, const Stroke& stroke) {
    const std::int64_t parent = level == 0 ? place : place / 2;
    const Point from = p.layout.centreOf(p.state, level, place), to = p.layout.centreOf(p.state, level + 1, parent);
    if (std::abs(from.x - to.x) < 1) // an edge without a horizontal part needs no elbow
        return b.polyline({from, to}, stroke);
    const double middle = (from.y + to.y) / 2;
    b.polyline({from, {from.x, middle}, {to.x, middle}, to}, stroke);
}

void paintEdges(SceneBuilder& b, const TreePicture& p) {
    for (std::int64_t level = 0; level < p.state.levels(); ++level) {
        if (isRun(p, level)) continue;
        const auto [begin, end] = shownPlaces(p, level);
        for (std::int64_t place = begin; place < end; ++place) {
            const std::int64_t parent = level == 0 ? place : place / 2;
            if (parent >= p.state.nodeCount(level + 1)) continue;
            const bool future = p.state.stateOf(level + 1, parent) == NodeState::Future;
            const Stroke stroke = future ? Stroke{p.theme.border, 1, {3, 3}} : Stroke{p.theme.control, 1.2, {}};
            paintEdge(b, p, level, place, stroke);
        }
    }
}

void paintImbalance(SceneBuilder& b, const TreePicture& p, const BalanceNode& node, const Box& box) {
    double sum = 0;
    for (const std::int8_t sign : node.signs) sum += sign;
    constexpr double kBelowFrame = 8; // below the frame around a selected token's set
    const double deviations = sum / std::sqrt(static_cast<double>(node.signs.size()));
    drawImbalance(b, p.theme, {box.x + box.width / 2, box.bottom() + kBelowFrame}, std::clamp(box.width / 2, 6.0, 16.0),
                  deviations / 2);
}

void paintNodeWords(SceneBuilder& b, const TreePicture& p, std::int64_t level, std::int64_t place, const Box& box,
                    bool live) {
    const BalanceNode& node = p.state.node(level, place);
    const TextStyle size{FontFace::Monospace, p.layout.numberSize, live ? FontWeight::Bold : FontWeight::Regular};
    const Point centre = box.centre();
    if (p.layout.isNumbered(level))
        b.label(centre, std::to_string(node.output.size()), size, live ? p.onPolicy : p.theme.text3,
                HorizontalAlign::Centre);
    const TextStyle percent{FontFace::Interface, 11, FontWeight::SemiBold};
    const bool known = p.data.query >= 0 && !std::isnan(p.data.numbersOf(level, place).discrepancy);
    if (!live || !known || !p.layout.showsParts()) return;
    constexpr double kAboveFrame = 7; // above the frame around a selected token's set
    const std::string words = fmt::format("{:.0f} %", 100 * p.data.numbersOf(level, place).discrepancy);
    if (level < p.state.levels() || b.width(words, percent) + 4 <= p.layout.pitchOf(p.state, level)) {
        const double half = b.width(words, percent) / 2,
                     x = std::clamp(centre.x, p.layout.plot.x + half, p.layout.plot.right() - half);
        b.text({x, box.y - kAboveFrame}, words, percent, p.theme.text1, HorizontalAlign::Centre);
    }
}

void paintNode(SceneBuilder& b, const TreePicture& p, std::int64_t level, std::int64_t place) {
    const NodeState state = p.state.stateOf(level, place);
    const Box box = p.layout.boxOf(p.state, level, place);
    const NodeLook look = nodeLook(p.theme, p.policy, state, p.layout.isNumbered(level));
    b.rectangle(box, look.fill, look.stroke, std::min(4.0, box.width / 4), {PickId::Kind::Node, nodeId(level, place)});
    if (state == NodeState::Future) return;
    paintNodeWords(b, p, level, place, box, state == NodeState::Live);
    if (p.layout.showsParts() && box.width >= 8) paintImbalance(b, p, p.state.node(level, place), box);
}

/// Neighbours too close to be drawn one by one: one box for all that are in the same state.
void paintRuns(SceneBuilder& b, const TreePicture& p, std::int64_t level) {
    const std::int64_t count = p.state.nodeCount(level);
    const double height = level == 0 ? p.layout.leafHeight : p.layout.nodeHeight;
    for (std::int64_t begin = 0, end = 0; begin < count; begin = end) {
        const NodeState state = p.state.stateOf(level, begin);
        for (end = begin + 1; end < count && p.state.stateOf(level, end) == state;) ++end;
        const double left = p.layout.xOf(p.layout.beginOf(p.state, p.state.firstBatch(level, begin)));
        const double right = p.layout.xOf(p.layout.beginOf(p.state, p.state.firstBatch(level, end)));
        const Box box{left, p.layout.rows[level] - height / 2, right - left, height};
        const NodeLook look = nodeLook(p.theme, p.policy, state, level == 0); // batches have ticks on their ground
        b.rectangle(box, look.fill, look.stroke, 0);
    }
}

/// Many pairs in a pixel: the more of them are in memory, the darker it is.
void paintDensity(SceneBuilder& b, const TreePicture& p, double y) {
    const Box& plot = p.layout.plot;
    const auto columns = static_cast<std::size_t>(plot.width);
    std::vector<int> read(columns, 0), kept(columns, 0);
    const auto& rows = p.state.tree().rows;
    for (auto at = std::ranges::lower_bound(rows, p.layout.xLow);
         at != rows.end() && *at < std::min<double>(p.layout.xHigh, p.state.cursor()); ++at) {
        const auto column =
            static_cast<std::size_t>(std::clamp(p.layout.xOf(*at) - plot.x, 0.0, static_cast<double>(columns) - 1));
        ++read[column];
        kept[column] += p.state.inMemory(*at) ? 1 : 0;
    }
    const auto shade = [&](std::size_t column) { // in eighths; 0: no pair in memory
        return kept[column] == 0 ? 0 : 1 + static_cast<int>(7.0 * kept[column] / read[column]);
    };
    for (std::size_t begin = 0, end = 0; begin < columns; begin = end) {
        for (end = begin + 1; end < columns && shade(end) == shade(begin);) ++end;
        if (shade(begin) > 0)
            b.rectangle({plot.x + static_cast<double>(begin), y, static_cast<double>(end - begin), p.layout.leafHeight},
                        withAlpha(p.theme.kept, 0.2 + 0.1 * shade(begin)));
    }
}

/// Pairs in memory as ticks; neighbours that touch are one rectangle.
void paintBarcode(SceneBuilder& b, const TreePicture& p) {
    const auto& rows = p.state.tree().rows;
    const double y = p.layout.rows[0] - p.layout.leafHeight / 2;
    if (p.layout.xOf(1) - p.layout.xOf(0) < 0.5) return paintDensity(b, p, y);
    double left = 0, right = -1;
    const auto flush = [&] {
        if (right > left) b.rectangle({left, y, right - left, p.layout.leafHeight}, p.theme.kept);
    };
    for (auto at = std::ranges::lower_bound(rows, p.layout.xLow - 1); at != rows.end() && *at < p.layout.xHigh; ++at) {
        if (!p.state.inMemory(*at)) continue;
        const double from = p.layout.xOf(*at), to = std::max(from + 0.75, p.layout.xOf(*at + 1) - 0.1);
        if (from > right + 0.25) {
            flush();
            left = from;
        }
        right = std::max(right, to);
    }
    flush();
}

void paintBatches(SceneBuilder& b, const TreePicture& p) {
    const auto [begin, end] = shownPlaces(p, 0);
    const bool runs = isRun(p, 0);
    if (runs)
        paintRuns(b, p, 0);
    else
        for (std::int64_t batch = begin; batch < end; ++batch)
            b.rectangle(p.layout.boxOf(p.state, 0, batch), p.theme.canvas, {}, 1);
    paintBarcode(b, p);
    for (std::int64_t batch = begin; !runs && batch < end; ++batch) {
        const bool future = p.state.stateOf(0, batch) == NodeState::Future;
        const bool newest = batch == (p.state.seen() - 1) / p.state.tree().batch;
        const Stroke stroke = future   ? Stroke{p.theme.border, 1, {3, 3}}
                              : newest ? Stroke{p.theme.ink, 2, {}}
                                       : Stroke{p.theme.control, 1, {}};
        b.rectangle(p.layout.boxOf(p.state, 0, batch), kTransparent, stroke, 1, {PickId::Kind::Node, nodeId(0, batch)});
    }
}

/// Edges that tokens took, by level and place; true: at least one of them was kept on it.
using TokenPaths = std::map<std::pair<std::int64_t, std::int64_t>, bool>;

/// Adds the way of a token up from its batch: as far as it was kept, and into the node that dropped it.
void addTokenPath(TokenPaths& paths, const TreePicture& p, TokenIndex token) {
    const TreeState::Path path = p.state.pathOf(token);
    if (path.batch < 0) return;
    std::int64_t place = path.batch;
    const std::int64_t last = static_cast<std::int64_t>(path.kept.size());
    for (std::int64_t level = 0; level < last; ++level) {
        paths[{level, place}] = true;
        place = path.kept[level];
    }
    if (path.droppedAt > 0) paths.try_emplace({last, place}, false);
}

/// Draws every edge once: dots of one token over the line of another would make a third pattern.
void paintPaths(SceneBuilder& b, const TreePicture& p) {
    const auto& selected = p.input.focus.selected;
    TokenPaths paths;
    for (std::size_t i = 0; i < std::min(kMostPaths, selected.size()); ++i) addTokenPath(paths, p, selected[i]);
    if (p.input.focus.hovered >= 0) addTokenPath(paths, p, p.input.focus.hovered);
    for (const auto& [edge, kept] : paths)
        paintEdge(b, p, edge.first, edge.second,
                  {p.theme.ink, 2.6, kept ? std::vector<double>{} : std::vector<double>{2, 3}});
}

/// Where the selected tokens ended up, and a mark below each.
void paintPathEnds(SceneBuilder& b, const TreePicture& p) {
    const double y = p.layout.rows[0] + p.layout.leafHeight / 2;
    std::vector<TokenIndex> tokens = p.input.focus.selected;
    if (p.input.focus.hovered >= 0) tokens.push_back(p.input.focus.hovered);
    double last = -1e9;
    for (const TokenIndex token : tokens) {
        const double x = p.layout.xOf(token + 0.5);
        if (x < p.layout.plot.x || x > p.layout.plot.right() || std::abs(x - last) < 0.8) continue;
        b.rectangle({x - 0.8, y + 1, 1.6, 4}, p.theme.ink);
        last = x;
    }
    std::set<std::pair<std::int64_t, std::int64_t>> holders; // one frame around each, however many tokens are in it
    for (std::size_t i = 0; i < std::min(kMostPaths, tokens.size()); ++i) {
        const TreeState::Path path = p.state.pathOf(tokens[i]);
        if (!p.state.isErased() && path.batch >= 0 && path.droppedAt == 0 && !path.kept.empty())
            holders.insert({std::ssize(path.kept), path.kept.back()});
    }
    for (const auto& [level, place] : holders) {
        const Box box = p.layout.boxOf(p.state, level, place);
        b.rectangle(box.grown(kFrame), kTransparent, {p.theme.ink, 2, {}}, 6);
    }
}

void paintCursor(SceneBuilder& b, const TreePicture& p) {
    const Box& plot = p.layout.plot;
    const double x = p.layout.xOf(p.state.cursor());
    if (x < plot.x - 1 || x > plot.right() + 1) return;
    const TextStyle tag{FontFace::Monospace, 12, FontWeight::Bold}, note{FontFace::Interface, 11};
    const std::string words = "j = " + formatCount(p.state.cursor());
    const double width = b.width(words, tag) + 14;
    const double middle = std::clamp(x, plot.x + width / 2, b.scene().width - width / 2 - 2);
    b.line({x, plot.y + 10}, {x, plot.bottom()}, {p.theme.ink, 2, {}});
    b.rectangle({middle - width / 2, plot.y - 8, width, 20}, p.theme.ink, {}, 3);
    b.label({middle, plot.y + 2}, words, tag, p.theme.paper, HorizontalAlign::Centre);
    const double noteX = middle + width / 2 + 8;
    if (noteX + b.width("not read yet", note) < plot.right())
        b.label({noteX, plot.y + 3}, "not read yet", note, p.theme.text2);
}

void paintLabels(SceneBuilder& b, const TreePicture& p) {
    const TextStyle name{FontFace::Interface, 15, FontWeight::SemiBold}, words{FontFace::Interface, 12},
        small{FontFace::Interface, 11};
    for (std::size_t level = 0; level < p.layout.rows.size(); ++level) {
        const double y = p.layout.rows[level];
        const auto live = std::ssize(p.state.sets()[level]);
        const std::string weight = fmt::format("weight {}", std::int64_t{1} << level);
        if (!p.layout.twoLineLabels) {
            if (p.layout.pitch >= 13) b.label({8, y}, setName(static_cast<std::int64_t>(level)), words, p.theme.text1);
            if (p.layout.oneLineLabels) b.label({38, y}, weight, small, p.theme.text2);
            continue;
        }
        b.text({10, y - 2}, setName(static_cast<std::int64_t>(level)), name, p.theme.text1);
        b.text({38, y - 2}, weight, words, p.theme.text2);
        b.text({10, y + 13}, live > 0 ? formatCount(live) + " live" : "empty", small,
               live > 0 ? p.theme.text2 : p.theme.text3);
    }
}

void paintAxis(SceneBuilder& b, const TreePicture& p) {
    const Box& plot = p.layout.plot;
    const TextStyle label{FontFace::Monospace, 10}, title{FontFace::Interface, 11};
    b.line({plot.x, plot.bottom()}, {plot.right(), plot.bottom()}, {p.theme.axis, 1, {}});
    const int most = std::clamp(static_cast<int>(plot.width / 52), 2, 9);
    for (const Tick& tick : positionTicks(static_cast<std::int64_t>(std::ceil(p.layout.xLow)),
                                          static_cast<std::int64_t>(p.layout.xHigh), most)) {
        const double x = p.layout.xOf(tick.value);
        b.line({x, plot.bottom()}, {x, plot.bottom() + 4}, {p.theme.axis, 1, {}});
        b.text({x, plot.bottom() + 7}, tick.label, label, p.theme.text2, HorizontalAlign::Centre, VerticalAlign::Top);
    }
    if (!p.layout.axisTitle) return;
    std::string fits = b.elide("Stream position (0-based)", title, plot.width);
    for (const std::string& more : {fmt::format("; one box = one batch of t = {} pairs", p.state.tree().batch),
                                    std::string(", ticks = pairs still in memory"),
                                    std::string(p.layout.hasNumbers() ? ", numbers = pairs in a set" : "")})
        if (b.width(fits + more, title) <= plot.width)
            fits += more;
        else
            break;
    b.text({plot.x + plot.width / 2, plot.bottom() + 22}, fits, title, p.theme.text2, HorizontalAlign::Centre,
           VerticalAlign::Top);
}

} // namespace

void drawImbalance(SceneBuilder& b, const Theme& theme, Point middle, double half, double share) {
    const double length = half * std::min(1.0, std::abs(share));
    b.line({middle.x - half, middle.y}, {middle.x + half, middle.y}, {theme.border, 1, {}});
    b.rectangle({share >= 0 ? middle.x : middle.x - length, middle.y - 2, std::max(1.5, length), 4}, theme.text2);
    b.line({middle.x, middle.y - 3.5}, {middle.x, middle.y + 3.5}, {theme.text2, 1, {}});
}

NodeLook nodeLook(const Theme& theme, Colour policy, NodeState state, bool holdsMarks) {
    if (state == NodeState::Live) return {policy, {}};
    if (state == NodeState::Future) return {theme.sunken, {theme.border, 1, {3, 3}}};
    return {holdsMarks ? theme.canvas : theme.border, {theme.control, 1, {}}};
}

void paintTree(SceneBuilder& builder, const TreePicture& p) {
    Box clip = p.layout.plot;
    clip.x -= 4, clip.width += 8;
    builder.pushClip(clip);
    paintGround(builder, p);
    paintEdges(builder, p);
    paintPaths(builder, p);
    for (std::int64_t level = 1; level <= p.state.levels(); ++level) {
        const auto [begin, end] = shownPlaces(p, level);
        if (isRun(p, level)) paintRuns(builder, p, level);
        for (std::int64_t place = begin; !isRun(p, level) && place < end; ++place) paintNode(builder, p, level, place);
    }
    paintBatches(builder, p);
    paintPathEnds(builder, p);
    builder.popClip();
    paintCursor(builder, p);
    paintLabels(builder, p);
    paintAxis(builder, p);
}

} // namespace kvscope
