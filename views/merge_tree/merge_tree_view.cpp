// Streaming BalanceKV as a tree that grows with the stream: every full batch is halved, and two halves are halved
// again.
#include "core/parameters/parameter_rows.h"
#include "core/policies/policy.h"
#include "views/common/balance_words.h"
#include "views/common/chart.h"
#include "views/common/policy_style.h"
#include "views/common/view_facts.h"
#include "views/merge_tree/tree_painter.h"
#include "views/merge_tree/tree_words.h"
#include "views/scene/axes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace kvscope {

namespace {

ParameterTable makeOptions() {
    return {balanceTreeOption("Which of the head's trees is drawn."), octaveOption(),
            integerRow("query", "Query", "", "", {-1, 10'000'000, -1}, Stage::Features,
                       "Token whose query the discrepancies are for; −1: the last one before the cut.",
                       "BalanceKV Algorithm 4")};
}

std::string octavesThatHold(const MergeTreeData& data) {
    std::string list;
    for (const MergeTreeData::Octave& octave : data.octaves)
        list += (list.empty() ? "" : ", ") + std::to_string(octave.bucket);
    return list.empty() ? "all values are zero" : "octaves with values: " + list;
}

TreeState stateOf(const ViewInput& input, const MergeTreeData& data) {
    const auto end = static_cast<TokenIndex>(data.stream->tokens);
    const TokenIndex cursor = std::clamp<TokenIndex>(input.cursor.value_or(end), 0, end);
    return {*data.shown(), cursor, isErased(data, *data.shown(), cursor)};
}

constexpr double kPartsRow = 18; // of the words about the parts of nodes

/// What is drawn at every size; the parts of nodes that need room are named in the row below where they are drawn.
std::vector<LegendEntry> legendOf(const MergeTreeData& data, const TreeLayout& layout, const Theme& theme,
                                  Colour policy, bool dropped) {
    const auto entry = [&](std::string label, NodeState state) {
        const NodeLook look = nodeLook(theme, policy, state, layout.hasNumbers());
        Stroke stroke = look.stroke;
        if (!stroke.dash.empty()) stroke.dash = {2, 2};
        if (state ==
            NodeState::Future) // its own outline nearly has the colour of the ground: too faint for a small box
            stroke.colour = theme.axis;
        return LegendEntry{std::move(label), Marker::Square, look.fill, stroke, 5};
    };
    if (dropped)
        return {entry(fmt::format("{}: dropped, below the erase line", treeName(*data.shown())), NodeState::Merged),
                entry("still to come", NodeState::Future)};
    return {entry(fmt::format("live set of {}", treeName(*data.shown())), NodeState::Live),
            entry("merged into its parent", NodeState::Merged), entry("still to come", NodeState::Future)};
}

/// The tree under its legend. There is a row of words about the parts of nodes where the tree under that row is still
/// high enough to show them.
struct Placed {
    std::vector<LegendEntry> legend;
    TreeLayout layout;
    double partsAt = 0; ///< middle of that row; 0: none
};

Placed placed(const MergeTreeData& data, const TreeState& state, const Viewport& viewport, const Theme& theme,
              Colour policy) {
    const bool numerator = state.tree().numerator;
    double top = 33 + (data.standIn ? kStandInRow : 0); // the cursor's number reaches a little above it
    Placed all{{}, {state, viewport, top, numerator}};
    all.legend = legendOf(data, all.layout, theme, policy, state.isErased());
    top += furtherLegendRows(viewport, all.legend);
    all.layout = {state, viewport, top + kPartsRow, numerator};
    if (all.layout.showsParts())
        all.partsAt = top - 3;
    else
        all.layout = {state, viewport, top, numerator, false};
    all.legend = legendOf(data, all.layout, theme, policy, state.isErased());
    return all;
}

/// Text on BalanceKV's colour: the darker of the theme's text and canvas.
Colour darkOf(const Theme& theme) {
    const auto sum = [](Colour c) { return c.r + c.g + c.b; };
    return sum(theme.text1) < sum(theme.canvas) ? theme.text1 : theme.canvas;
}

/// "bar below: sign imbalance", "% above: discrepancy", each with its mark.
void drawParts(SceneBuilder& builder, const MergeTreeData& data, const Theme& theme, double y) {
    const TextStyle words{FontFace::Interface, 11}, percent{FontFace::Interface, 11, FontWeight::SemiBold};
    const auto write = [&](double x, const std::string& text, const TextStyle& style, Colour colour) {
        const std::string fits = builder.elide(text, style, builder.scene().width - x - 10);
        return x + builder.label({x, y}, fits, style, colour);
    };
    drawImbalance(builder, theme, {20, y}, 8, 0.7);
    const double x = write(34, "sign imbalance", words, theme.text2) + 14;
    if (data.query < 0)
        write(x, "no discrepancies: " + data.whyNoQuery, words, theme.text2);
    else
        write(write(x, "%", percent, theme.text1) + 6, fmt::format("discrepancy for query {}", formatCount(data.query)),
              words, theme.text2);
}

/// A part of the picture: level and place, and the token under the pointer where batches are drawn (-1: none).
struct Spot {
    std::int64_t level = -1, place = 0; ///< level -1: nothing
    TokenIndex token = -1;
};

Spot spotAt(const MergeTreeData& data, const TreeState& state, const Scene& scene, Point at) {
    const PickId pick = pickAt(scene, at, 0);
    if (pick.kind != PickId::Kind::Node && pick.kind != PickId::Kind::Cell) return {};
    Spot spot{levelOf(pick.index), placeOf(pick.index), -1};
    const bool known = spot.level == kOctaveLevel
                           ? spot.place < std::ssize(data.octaves)
                           : spot.level <= state.levels() && spot.place < state.nodeCount(spot.level);
    if (!known) return {};
    const double position = scene.dataAt(at).x;
    const auto& rows = state.tree().rows;
    const auto row = std::ranges::lower_bound(rows, static_cast<TokenIndex>(position));
    if (spot.level == 0 && scene.plot.width >= scene.xMax - scene.xMin &&
        row != rows.end()) // a pixel holds at most one token
        spot.token = *row;
    return spot;
}

class MergeTreeView final : public View {
public:
    MergeTreeView()
        : View({.id = "merge_tree",
                .name = "Merge-and-reduce tree",
                .summary = "The sets that streaming BalanceKV keeps in memory, as the stream goes by",
                .paper = "BalanceKV Fig. 2, Algorithms 1 and 4",
                .group = ViewGroup::Algorithm,
                .needs = {{"octave", {{"tree", {"octave"}}}}},
                .data = "merge_tree",
                .teaching = TeachingRole::StepsFirst,
                .leastHeight = 200},
               makeOptions()) {}

    std::string whyNoPicture(const ViewInput& input, const ParameterValues&) const override {
        if (const std::string why = whyNoData(input, "Streaming BalanceKV over the prompt…"); !why.empty()) return why;
        const auto data = dataAs<MergeTreeData>(input);
        if (!data->shown())
            return fmt::format("No value norm lies in octave {} ({}). Choose another octave, or the fullest one.",
                               data->wantedBucket, octavesThatHold(*data));
        return {};
    }

    Scene draw(const ViewInput& input, const ParameterValues&, const Viewport& viewport) const override {
        const auto data = dataAs<MergeTreeData>(input);
        const Theme& theme = themeOf(viewport.theme);
        const TreeState state = stateOf(input, *data);
        const Colour policy = policyStyle(firstOf(PolicyFamily::BalanceRounds), viewport.theme)
                                  .colour; // the family's colour, on which dark numbers can be read
        const Placed all = placed(*data, state, viewport, theme, policy);
        const TreeLayout& layout = all.layout;
        Scene scene = blankScene(viewport);
        SceneBuilder builder(scene, *viewport.text);
        const TreePicture picture{input, *data, state, layout, theme, policy, darkOf(theme)};
        drawBalanceLegend(builder, viewport, all.legend, *data, "No pane streams BalanceKV");
        if (all.partsAt > 0) drawParts(builder, *data, theme, all.partsAt);
        paintTree(builder, picture);
        paintOctaves(builder, picture);
        drawProvenance(builder, input, viewport);
        setDataRange(scene, {layout.plot, {layout.xLow, layout.xHigh, AxisScale::Linear, {}}, {}});
        return scene;
    }

    std::string conclude(const ViewInput& input, const ParameterValues&) const override {
        const auto data = dataAs<MergeTreeData>(input);
        return treeFinding(*data, stateOf(input, *data));
    }

    ViewTable table(const ViewInput& input, const ParameterValues& options) const override {
        std::vector<std::vector<std::string>> rows;
        if (whyNoPicture(input, options).empty()) {
            const auto data = dataAs<MergeTreeData>(input);
            const TreeState state = stateOf(input, *data);
            for (std::int64_t level = 1; level <= state.levels(); ++level)
                for (std::int64_t place = 0; place < state.nodeCount(level); ++place)
                    rows.push_back(nodeCells(*data, state, level, place));
        }
        return tableOf({"level", "node", "first batch", "last batch", "input", "kept", "weight", "sum of signs",
                        "discrepancy", "largest |1 - 2p|", "state", "members"},
                       std::move(rows));
    }

    StepSequence stepSequence(const ViewInput& input, const ParameterValues& options) const override {
        StepSequence sequence;
        if (!whyNoPicture(input, options).empty()) return sequence;
        const auto data = dataAs<MergeTreeData>(input);
        const BalanceTree& tree = *data->shown();
        sequence.title = "Merge and reduce";
        const std::int64_t batches = std::ssize(tree.rows) / tree.batch;
        for (std::int64_t batch = 1; batch <= batches; ++batch) {
            sequence.events.push_back(tree.rows[batch * tree.batch - 1] + 1);
            if (batch % 2 == 0 && tree.nodes.size() > 1) sequence.milestones.push_back(sequence.events.back());
        }
        if (std::cmp_less(batches * tree.batch, tree.rows.size())) // the last, partial batch stays exact
            sequence.events.push_back(static_cast<TokenIndex>(data->stream->tokens));
        return sequence;
    }

    std::string caption(const ViewInput& input, const ParameterValues& options) const override {
        if (const std::string why = whyNoPicture(input, options); !why.empty()) return why;
        const auto data = dataAs<MergeTreeData>(input);
        return treeCaption(*data, stateOf(input, *data));
    }

    PointFacts inspect(const ViewInput& input, const ParameterValues&, const Scene& scene, Point at) const override {
        const auto data = dataAs<MergeTreeData>(input);
        const TreeState state = stateOf(input, *data);
        const Spot spot = spotAt(*data, state, scene, at);
        if (spot.level < 0) return {};
        if (spot.level == kOctaveLevel) return octaveFacts(*data, spot.place, state.cursor());
        return spot.level > 0 ? nodeFacts(*data, state, spot.level, spot.place)
                              : batchFacts(input, *data, state, spot.place, spot.token);
    }

    std::vector<TokenIndex> tokensAt(const ViewInput& input, const ParameterValues& options, const Scene& scene,
                                     Point at) const override {
        if (!whyNoPicture(input, options).empty()) return {};
        const auto data = dataAs<MergeTreeData>(input);
        const TreeState state = stateOf(input, *data);
        const Spot spot = spotAt(*data, state, scene, at);
        if (spot.level < 0) return {};
        return spot.token >= 0 ? std::vector<TokenIndex>{spot.token} : membersOf(*data, state, spot.level, spot.place);
    }
};

struct Bars {
    Box box;
    int first = 0, count = 1; ///< octaves from left to right
    double highest = 1;

    double left(int bucket) const { return box.x + box.width * (bucket - first) / count; }
    double width() const { return box.width / count; }
};

Bars barsOf(const TreePicture& p) {
    Bars bars;
    bars.box = {p.layout.histogram.x, p.layout.histogram.y + 30, p.layout.histogram.width,
                std::max(20.0, p.layout.histogram.height - 64)};
    bars.first = p.data.octaves.front().bucket;
    bars.count = p.data.octaves.back().bucket - bars.first + 1;
    for (const MergeTreeData::Octave& octave : p.data.octaves)
        bars.highest = std::max(bars.highest, static_cast<double>(p.data.stream->trees[octave.tree].rows.size()));
    return bars;
}

void paintBars(SceneBuilder& b, const TreePicture& p, const Bars& bars, double line) {
    for (std::size_t i = 0; i < p.data.octaves.size(); ++i) {
        const MergeTreeData::Octave& octave = p.data.octaves[i];
        const std::vector<TokenIndex>& rows = p.data.stream->trees[octave.tree].rows;
        const auto read = static_cast<double>(std::ranges::lower_bound(rows, p.state.cursor()) - rows.begin());
        const double gap = std::min(2.0, bars.width() * 0.1), scale = bars.box.height / bars.highest;
        Box box{bars.left(octave.bucket) + gap, 0, bars.width() - 2 * gap, scale * static_cast<double>(rows.size())};
        box.y = bars.box.bottom() - box.height;
        const bool erased = std::ldexp(1.0, octave.bucket) <= line;
        const Box filled{box.x, bars.box.bottom() - scale * read, box.width, scale * read};
        b.rectangle(filled, erased ? p.theme.masked : p.policy);
        const Stroke shown = octave.bucket == p.data.wantedBucket && p.state.tree().numerator
                                 ? Stroke{p.theme.ink, 2, {}}
                                 : Stroke{p.theme.control, 1, {}};
        b.rectangle(box, kTransparent, shown, 0,
                    {PickId::Kind::Cell, nodeId(kOctaveLevel, static_cast<std::int64_t>(i))});
    }
}

/// The erase line where it lies among the bars; else an arrow that tells on which side of them it lies.
void paintEraseLine(SceneBuilder& b, const TreePicture& p, const Bars& bars, double line) {
    const TextStyle small{FontFace::Interface, 11};
    const double y = p.layout.histogram.y + 18;
    if (line <= 0) {
        b.text({bars.box.x, y}, "no erase line yet", small, p.theme.text2);
        return;
    }
    const double octave = std::log2(line), x = bars.box.x + bars.box.width * (octave - bars.first + 1) / bars.count;
    const std::string words = "erase line 2^" + formatFixed(octave, 1);
    if (x < bars.box.x || x > bars.box.right()) {
        b.text({bars.box.x, y}, x < bars.box.x ? "← " + words : words + " →", small, p.theme.error);
        return;
    }
    b.line({x, bars.box.y}, {x, bars.box.bottom()}, {p.theme.errorLine, 1.5, {5, 3}});
    b.text({bars.box.x, y}, words, small, p.theme.error);
}

} // namespace

const View& mergeTreeView() { return onlyOne<MergeTreeView>(); }

void paintOctaves(SceneBuilder& b, const TreePicture& p) {
    if (p.layout.histogram.width <= 0 || p.data.octaves.empty()) return;
    const Bars bars = barsOf(p);
    const double line = p.data.stream->eraseLineAt(p.data.kvHead, p.state.cursor());
    const TextStyle title{FontFace::Interface, 11, FontWeight::SemiBold}, label{FontFace::Monospace, 10},
        axis{FontFace::Interface, 11};
    b.text({bars.box.x, p.layout.histogram.y}, "Norms of values, by octave", title, p.theme.text1);
    paintBars(b, p, bars, line);
    paintEraseLine(b, p, bars, line);
    b.line({bars.box.x, bars.box.bottom()}, {bars.box.right(), bars.box.bottom()}, {p.theme.axis, 1, {}});
    const int step = std::max(1, static_cast<int>(std::ceil(26 / bars.width())));
    for (int bucket = bars.first; bucket < bars.first + bars.count; bucket += step)
        b.text({bars.left(bucket) + bars.width() / 2, bars.box.bottom() + 7},
               bucket < 0 ? "−" + std::to_string(-bucket) : std::to_string(bucket), label, p.theme.text2,
               HorizontalAlign::Centre, VerticalAlign::Top);
    b.text({bars.box.x + bars.box.width / 2, bars.box.bottom() + 22},
           b.elide("octave i: 2^(i−1) < ‖v‖ ≤ 2^i", axis, bars.box.width + 12), axis, p.theme.text2,
           HorizontalAlign::Centre, VerticalAlign::Top);
}

} // namespace kvscope
