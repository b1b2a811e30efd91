// Streaming BalanceKV as a tree that grows with the stream: every full batch is halved, and two halves are halved again.
#include "views/merge_tree/merge_tree_view.h"

#include "views/chart.h"
#include "views/explanations.h"
#include "views/merge_tree/tree_painter.h"
#include "views/merge_tree/tree_words.h"
#include "views/option_needs.h"
#include "views/scene/axes.h"
#include "views/token_groups.h"
#include "views/told_policy.h"
#include "views/view_facts.h"
#include "views/view_options.h"

#include <fmt/format.h>

#include <algorithm>

namespace kvscope {

namespace {

std::shared_ptr<const ParameterTable> makeOptions() {
    return std::make_shared<const ParameterTable>(ParameterTable{
        choiceOption("tree", "Tree", "Which of the head's trees is drawn.", "BalanceKV Algorithm 1",
                     {{"keys", "Denominator", "all keys, values of 1"},
                      {"fullest", "Fullest octave", "the octave of value norms with the most tokens"},
                      {"octave", "One octave", "the one numbered below"}},
                     Stage::Features),
        integerOption("octave", "Octave", "i of 2^(i−1) < ‖v‖ ≤ 2^i; read when the tree is one octave.", "BalanceKV Algorithm 1", -150, 128, 0,
                      Stage::Features),
        integerOption("query", "Query", "Token whose query the discrepancies are for; −1: the last one before the cut.", "BalanceKV Algorithm 3", -1,
                      10'000'000, -1, Stage::Features)});
}

class MergeTreeView final : public View, public TokenGroups, public OptionNeedsView, public ToldPolicyView {
public:
    MergeTreeView()
        : View({.id = "merge_tree",
                .name = "Merge-and-reduce tree",
                .summary = "The sets that streaming BalanceKV keeps in memory, as the stream goes by",
                .paper = "BalanceKV Fig. 2, Algorithms 1 and 3",
                .help = std::string(viewExplanation("merge_tree_view")),
                .options = makeOptions(),
                .data = "merge_tree"}) {}

    Scene buildScene(const ViewInput& input, const ParameterValues& options, const Viewport& viewport) const override;
    std::string finding(const ViewInput& input, const ParameterValues& options) const override;
    ViewTable table(const ViewInput& input, const ParameterValues& options) const override;
    std::vector<OptionNeed> optionNeeds() const override;
    std::string toldPolicy(const ViewInput& input) const override;
    PointFacts factsAt(const ViewInput& input, const ParameterValues& options, const Scene& scene, Point at) const override;
    std::vector<TokenIndex> tokensAt(const ViewInput& input, const ParameterValues& options, const Scene& scene, Point at) const override;
    Story story(const ViewInput& input, const ParameterValues& options) const override;
    std::string caption(const ViewInput& input, const ParameterValues& options) const override;
};

std::string octavesThatHold(const MergeTreeData& data) {
    std::string list;
    for (const MergeTreeData::Octave& octave : data.octaves)
        list += (list.empty() ? "" : ", ") + std::to_string(octave.bucket);
    return list.empty() ? "all values are zero" : "octaves with values: " + list;
}

std::string whyNoPicture(const ViewInput& input) {
    if (const std::string why = whyNoData<MergeTreeData>(input, "Streaming BalanceKV over the prompt…"); !why.empty())
        return why;
    const auto data = dataAs<MergeTreeData>(input);
    if (!data->shown())
        return fmt::format("No value norm lies in octave {} ({}). Choose another octave, or the fullest one.", data->wantedBucket, octavesThatHold(*data));
    return {};
}

TreeState stateOf(const ViewInput& input, const MergeTreeData& data) {
    const auto end = static_cast<TokenIndex>(data.stream->tokens);
    return {*data.shown(), std::clamp<TokenIndex>(input.cursor.value_or(end), 0, end)};
}

std::vector<LegendEntry> legendOf(const MergeTreeData& data, const Theme& theme, Colour policy) {
    return {
        {fmt::format("live set, number of pairs · {}", treeName(*data.shown())), Marker::Square, policy, {}, 5},
        {"merged into its parent", Marker::Square, kTransparent, {theme.control, 1, {}}, 5},
        {"still to come", Marker::Square, theme.sunken, {theme.border, 1, {2, 2}}, 5},
        {"sign imbalance", Marker::Square, theme.text2, {}, 3, true},
        {data.query < 0 ? data.whyNoQuery : fmt::format("% discrepancy for query {}", formatCount(data.query)), Marker::Circle, kTransparent, {}, 0}};
}

TreeLayout layoutOf(const MergeTreeData& data, const TreeState& state, const std::vector<LegendEntry>& legend, const Viewport& viewport) {
    return {state, viewport, (data.standIn ? 58 : 40) + furtherLegendRows(viewport, legend), state.tree().numerator};
}

/// Text on BalanceKV's colour: the dark one of the theme's two.
Colour darkOf(const Theme& theme) {
    const auto sum = [](Colour c) { return c.r + c.g + c.b; };
    return sum(theme.text1) < sum(theme.canvas) ? theme.text1 : theme.canvas;
}

void drawHead(SceneBuilder& builder, const MergeTreeData& data, const Viewport& viewport, const std::vector<LegendEntry>& legend) {
    const TextStyle note{FontFace::Interface, 11};
    double y = 13;
    if (data.standIn) {
        const std::string words = fmt::format("No pane streams BalanceKV: this is {}. Choose the policy \"BalanceKV, streaming\" to see your own.", data.source);
        builder.text({10, y}, builder.elide(words, note, viewport.width - 20), note, themeOf(viewport.theme).warning, HorizontalAlign::Left, VerticalAlign::Middle);
        y += 18;
    }
    drawTopLegend(builder, viewport, legend, 10, y);
}

std::vector<OptionNeed> MergeTreeView::optionNeeds() const {
    return {{"octave", {{"tree", {"octave"}}}}};
}

Scene MergeTreeView::buildScene(const ViewInput& input, const ParameterValues&, const Viewport& viewport) const {
    if (const std::string why = whyNoPicture(input); !why.empty())
        return emptyScene(why, viewport);
    const auto data = dataAs<MergeTreeData>(input);
    const Theme& theme = themeOf(viewport.theme);
    const TreeState state = stateOf(input, *data);
    const Colour policy = policyStyle("balancekv", viewport.theme).colour; // its family's, on which dark numbers can be read
    const std::vector<LegendEntry> legend = legendOf(*data, theme, policy);
    const TreeLayout layout = layoutOf(*data, state, legend, viewport);
    Scene scene;
    scene.width = viewport.width;
    scene.height = viewport.height;
    scene.background = theme.canvas;
    SceneBuilder builder(scene, *viewport.text);
    const TreePicture picture{input, *data, state, layout, theme, policy, darkOf(theme)};
    drawHead(builder, *data, viewport, legend);
    paintTree(builder, picture);
    paintOctaves(builder, picture);
    drawProvenance(builder, input, viewport);
    scene.plot = layout.plot;
    scene.xMin = layout.xLow, scene.xMax = layout.xHigh;
    scene.yMin = 0, scene.yMax = 1;
    return scene;
}

std::string MergeTreeView::finding(const ViewInput& input, const ParameterValues&) const {
    if (const std::string why = whyNoPicture(input); !why.empty())
        return why;
    const auto data = dataAs<MergeTreeData>(input);
    return treeFinding(*data, stateOf(input, *data));
}

std::string MergeTreeView::toldPolicy(const ViewInput& input) const {
    const auto data = dataAs<MergeTreeData>(input);
    return data ? data->policy : std::string();
}

Story MergeTreeView::story(const ViewInput& input, const ParameterValues&) const {
    Story story;
    if (!whyNoPicture(input).empty())
        return story;
    const auto data = dataAs<MergeTreeData>(input);
    const BalanceTree& tree = *data->shown();
    story.title = "Merge and reduce";
    const std::int64_t batches = std::ssize(tree.rows) / tree.batch;
    for (std::int64_t batch = 1; batch <= batches; ++batch) {
        story.events.push_back(tree.rows[static_cast<std::size_t>(batch * tree.batch - 1)] + 1);
        if (batch % 2 == 0 && tree.nodes.size() > 1)
            story.milestones.push_back(story.events.back());
    }
    if (std::cmp_less(batches * tree.batch, tree.rows.size())) // the last, partial batch stays exact
        story.events.push_back(static_cast<TokenIndex>(data->stream->tokens));
    return story;
}

std::string MergeTreeView::caption(const ViewInput& input, const ParameterValues&) const {
    if (const std::string why = whyNoPicture(input); !why.empty())
        return why;
    const auto data = dataAs<MergeTreeData>(input);
    return treeCaption(*data, stateOf(input, *data));
}

/// A part of the picture: level and place, and the token under the pointer where batches are drawn (-1: none).
struct Spot {
    std::int64_t level = -1, place = 0; ///< level -1: nothing
    TokenIndex token = -1;
};

Spot spotAt(const MergeTreeData& data, const TreeState& state, const Scene& scene, Point at) {
    const PickId pick = pickAt(scene, at, 0);
    if (pick.kind != PickId::Kind::Node && pick.kind != PickId::Kind::Cell)
        return {};
    Spot spot{levelOf(pick.index), placeOf(pick.index), -1};
    const bool known = spot.level == kOctaveLevel ? spot.place < std::ssize(data.octaves)
                                                  : spot.level <= state.levels() && spot.place < state.nodeCount(spot.level);
    if (!known)
        return {};
    const double position = scene.xMin + (at.x - scene.plot.x) / scene.plot.width * (scene.xMax - scene.xMin);
    const auto& rows = state.tree().rows;
    const auto row = std::lower_bound(rows.begin(), rows.end(), static_cast<TokenIndex>(position));
    if (spot.level == 0 && scene.plot.width >= scene.xMax - scene.xMin && row != rows.end()) // a pixel is a token at most
        spot.token = *row;
    return spot;
}

PointFacts MergeTreeView::factsAt(const ViewInput& input, const ParameterValues&, const Scene& scene, Point at) const {
    if (!whyNoPicture(input).empty())
        return {};
    const auto data = dataAs<MergeTreeData>(input);
    const TreeState state = stateOf(input, *data);
    const Spot spot = spotAt(*data, state, scene, at);
    if (spot.level < 0)
        return {};
    if (spot.level == kOctaveLevel)
        return octaveFacts(*data, spot.place, state.cursor());
    return spot.level > 0 ? nodeFacts(*data, state, spot.level, spot.place) : batchFacts(input, *data, state, spot.place, spot.token);
}

std::vector<TokenIndex> MergeTreeView::tokensAt(const ViewInput& input, const ParameterValues&, const Scene& scene, Point at) const {
    if (!whyNoPicture(input).empty())
        return {};
    const auto data = dataAs<MergeTreeData>(input);
    const TreeState state = stateOf(input, *data);
    const Spot spot = spotAt(*data, state, scene, at);
    if (spot.level < 0)
        return {};
    return spot.token >= 0 ? std::vector<TokenIndex>{spot.token} : membersOf(*data, state, spot.level, spot.place);
}

ViewTable MergeTreeView::table(const ViewInput& input, const ParameterValues&) const {
    ViewTable table;
    table.columns = {"level", "node", "first batch", "last batch", "input", "kept", "weight", "sum of signs", "discrepancy", "largest |1 - 2p|", "state", "members"};
    if (!whyNoPicture(input).empty())
        return table;
    const auto data = dataAs<MergeTreeData>(input);
    const auto state = std::make_shared<const TreeState>(stateOf(input, *data));
    const auto ids = std::make_shared<std::vector<std::int64_t>>();
    for (std::int64_t level = 1; level <= state->levels(); ++level)
        for (std::int64_t place = 0; place < state->nodeCount(level); ++place)
            ids->push_back(nodeId(level, place));
    table.rowCount = std::ssize(*ids);
    table.cell = [data, state, ids](std::int64_t row, int column) {
        const std::int64_t id = (*ids)[static_cast<std::size_t>(row)];
        return nodeCell(*data, *state, levelOf(id), placeOf(id), column);
    };
    return table;
}

} // namespace

const View& mergeTreeView() {
    static const MergeTreeView view;
    return view;
}

} // namespace kvscope
