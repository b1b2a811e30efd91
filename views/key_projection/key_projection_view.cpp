// Keys of one head on two of their principal axes, or unfolded by t-SNE. One picture and one range serve all panes, so
// that what differs between two of them is the policy and nothing else.
#include "views/key_projection/key_projection_view.h"

#include "views/chart.h"
#include "views/explanations.h"
#include "views/option_needs.h"
#include "views/view_options.h"
#include "views/key_projection/projection_crowd.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace kvscope {

namespace {

std::shared_ptr<const ParameterTable> makeOptions() {
    constexpr const char *axes = "KeyDiff Figs. 4, 5", *marks = "KeyDiff Figs. 5, 8-11";
    constexpr const char* unfolding = "SubGen Fig. 1; van der Maaten and Hinton, JMLR 9 (2008)";
    return std::make_shared<const ParameterTable>(ParameterTable{
        choiceOption("method", "Method", "How tokens find their places. t-SNE keeps neighbours together and nothing else: no axes, no distances, no densities.",
                     unfolding,
                     {{"pca", "principal axes", "a plane through the vectors, with the variance that it holds"},
                      {"tsne", "t-SNE", "up to 8,192 tokens; takes seconds"}},
                     Stage::Features),
        realOption("perplexity", "t-SNE perplexity", "How many neighbours a token looks at, about.", unfolding, 2, 200, 30, Stage::Features),
        integerOption("iterations", "t-SNE iterations", "Steps of the descent; the first third of them, 250 at most, pull neighbours together twelvefold.",
                      unfolding, 50, 5000, 750, Stage::Features),
        integerOption("tsne_seed", "t-SNE seed", "Of the random start. What changes with it is the method's doing, not the data's.", unfolding, 0, 9999, 0,
                      Stage::Features),
        integerOption("x_component", "Horizontal component", "Principal component along x; t-SNE has none.", axes, 1, 5, 1),
        integerOption("y_component", "Vertical component", "Principal component along y; t-SNE has none.", axes, 1, 5, 2),
        choiceOption("source", "Source",
                     "Keys as attention reads them, or before the rotary embedding, where content is not mixed with position.",
                     "KeyDiff Figs. 4, 11",
                     {{"keys", "keys after RoPE", "as attention reads them"},
                      {"keys_pre_rope", "keys before RoPE", "content alone"},
                      {"values", "values", "of the KV head (SubGen Fig. 1)"},
                      {"queries", "queries", "of the query head, where all were captured"}},
                     Stage::Features),
        choiceOption("colour_by", "Colour", "What the colour of a mark says; fill always says kept, a ring evicted.", "KeyDiff Figs. 4, 5",
                     {{"state", "State", "kept blue, evicted orange"},
                      {"position", "Position", "in the prompt"},
                      {"score", "Score", "of this pane's policy"},
                      {"norm", "Norm", "of the projected vector"},
                      {"cluster", "Cluster", "the nearest of the greedy centres, which are marked (SubGen Fig. 1)"},
                     {"panes", "Panes", "how many panes keep the token"}}),
        integerOption("centres", "Centres", "Greedy k-centers of the vectors in the head, the first token first; colour by cluster shows them.",
                      "SubGen section 3.2, Fig. 1", 2, 64, 16),
        flagOption("tint", "Voronoi tint", "With colour by cluster: tints the plane by the centre that is nearest in it.", "SubGen Fig. 1"),
        choiceOption("crowd", "Crowds", "How many tokens are drawn.", marks,
                     {{"auto", "density where crowded", "marks, and where more than 20,000 lie in the range (fewer in a small picture) their density; zoom in for marks"},
                      {"density", "density", "evicted tokens counted in cells, a 200th of the range a side; many kept ones too"},
                      {"marks", "marks", "every kept token; of a crowd of evicted ones every so many-th"}}),
        flagOption("retained_only", "Kept tokens only", "Hides evicted tokens, so that only what is left is seen.", marks),
        flagOption("show_queries", "Queries", "Shows the query head's captured queries on the axes of the keys.", marks),
        flagOption("show_after_cut", "Tokens after the cut", "Shows the keys that no policy has seen as small grey dots.", marks),
        valueRangeOption(checkShadeRange)});
}

class KeyProjectionView final : public View, public ColourScaleView, public OptionNeedsView {
public:
    KeyProjectionView()
        : View({.id = "key_projection",
                .name = "Key projection",
                .summary = "Keys of one head on two principal axes or by t-SNE, kept against evicted",
                .paper = "KeyDiff Figs. 4, 5, 8-11; SubGen Fig. 1",
                .help = std::string(viewExplanation("key_projection_view")),
                .options = makeOptions(),
                .perPane = true,
                .data = "projection"}) {}

    Scene buildScene(const ViewInput& input, const ParameterValues& options, const Viewport& viewport) const override;
    std::string finding(const ViewInput& input, const ParameterValues& options) const override;
    ViewTable table(const ViewInput& input, const ParameterValues& options) const override;
    std::vector<OptionNeed> optionNeeds() const override;
    PointFacts factsAt(const ViewInput& input, const ParameterValues& options, const Scene& scene, Point at) const override;

private:
    std::unique_ptr<const ColourScale> scaleOf(const ViewInput& input, const ParameterValues& options) const override;
};

std::string whyNoPicture(const ViewInput& input, const ParameterValues& options) {
    const PaneData* pane = activePane(input);
    if (!pane)
        return input.capture ? "No policy in this pane. Add one." : kNoCapture;
    if (const std::string why = whyEmpty(input, *pane); !why.empty())
        return why;
    if (!input.data.error.empty())
        return input.data.error;
    if (input.data.value)
        return "";
    return options.choice("method") == "tsne" ? "Looking for the neighbours of every token, for t-SNE…" : "Computing the principal axes…";
}

/// "perplexity 30, seed 0": without these an embedding is nothing that anybody could make again.
std::string tsneLabel(const TsneRun& run) {
    return fmt::format("perplexity {:g}, seed {}", run.request.perplexity, run.request.seed);
}

std::string tsneNote(const TsneRun& run) {
    if (run.iteration < run.request.iterations)
        return fmt::format("t-SNE, {}: iteration {} of {}", tsneLabel(run), formatCount(run.iteration), formatCount(run.request.iterations));
    return fmt::format("t-SNE, {}, {} iterations: KL {} nats", tsneLabel(run), formatCount(run.iteration), formatFixed(run.divergence, 3));
}

/// An embedding has no unit, no variance and no direction: its axes say so by naming nothing but the method.
AxisSpec axisOf(const ProjectionData& projection, int component, double low, double high) {
    if (projection.tsne)
        return {low, high, AxisScale::Linear, fmt::format("t-SNE {}", component + 1)};
    const auto& shares = projection.axes.explainedVariance;
    const auto index = static_cast<std::size_t>(component);
    const std::string share = index < shares.size() ? fmt::format(" ({} % of variance)", formatFixed(100 * shares[index], 1)) : "";
    return {low, high, AxisScale::Linear, fmt::format("PC {}{}", component + 1, share)};
}

constexpr double kNotePitch = 13; // of the lines under a figure
const TextStyle kNote{FontFace::Interface, 10};

struct Room {
    AxesStyle axes;
    bool legend = true, caption = false;
};

/// What gives way in a small dock, in this order: titles, legend, tick labels; never the data.
Room roomFor(const Viewport& viewport, const ProjectionData& projection) {
    Room room;
    const double scale = viewport.forExport ? 1.5 : 1; // nobody can hover over a figure: its small panels name everything too
    const double width = scale * viewport.width, height = scale * viewport.height;
    room.axes.titles = width >= 220 && height >= 180;
    room.axes.tickLabels = width >= 180 && height >= 140 && !projection.tsne;
    room.axes.forPaper = viewport.theme == ThemeId::Paper;
    room.legend = width >= 200 && height >= 160;
    room.caption = viewport.forExport;
    return room;
}

/// Without the share of variance where that is longer than the axis.
void shortenTitle(AxisSpec& axis, double room, const TextService& text) {
    if (text.measure(axis.title, {FontFace::Interface, 11}).width > room)
        axis.title = axis.title.substr(0, axis.title.find(" ("));
}

/// Lines under the plot: what was thinned out, what lies beyond the range, and where the figure comes from.
std::vector<std::string> notesOf(const ViewInput& input, const PaneData& pane, const ProjectionMarks& marks,
                                 const PlotFrame& frame, const Room& room) {
    std::vector<std::string> notes;
    if (const auto& run = projectionOf(input).tsne)
        notes.push_back(tsneNote(*run));
    if (const std::string& source = projectionOf(input).source; source == "values" || source == "queries")
        notes.push_back(source == "values" ? "values of the KV head" : fmt::format("queries of query head {}", input.queryHead.value));
    if (marks.colourBy == "cluster" && projectionOf(input).centres.empty())
        notes.emplace_back("looking for the greedy centres…");
    if (marks.tinted)
        notes.push_back(tintNote(projectionOf(input), marks));
    if (const std::string crowd = crowdNote(marks); !crowd.empty())
        notes.push_back(crowd);
    std::int64_t beyond = 0;
    for (std::size_t i = 0; i < marks.states.size(); ++i) {
        const Point p = keyPoint(projectionOf(input), marks, static_cast<TokenIndex>(i));
        const bool inside = p.x >= frame.x.low && p.x <= frame.x.high && p.y >= frame.y.low && p.y <= frame.y.high;
        beyond += !inside && marks.states[i] != TokenState::AfterCut;
    }
    if (beyond > 0)
        notes.push_back(fmt::format("{} tokens beyond the range", formatCount(beyond)));
    if (pane.result->simulated && !room.caption)
        notes.push_back("simulated on full-attention tensors");
    if (room.caption)
        notes.push_back(provenance(input, {&pane}));
    return notes;
}

/// Under a figure: at most two lines, the last of which says with an ellipsis that it is not all.
std::vector<std::string> captionLines(const SceneBuilder& builder, const std::string& notes, const Viewport& viewport) {
    constexpr std::size_t kMost = 2;
    std::vector<std::string> lines = builder.wrap(notes, kNote, viewport.width - 16);
    for (std::size_t i = kMost; i < lines.size(); ++i)
        lines[kMost - 1] += " " + lines[i];
    lines.resize(std::min(lines.size(), kMost));
    for (std::string& line : lines)
        line = builder.elide(line, kNote, viewport.width - 16);
    return lines;
}

void drawCaption(SceneBuilder& builder, const std::vector<std::string>& lines, const Viewport& viewport) {
    double y = viewport.height - 6 - kNotePitch * static_cast<double>(lines.size());
    for (const std::string& line : lines) {
        builder.text({viewport.width / 2, y}, line, kNote, themeOf(viewport.theme).text3, HorizontalAlign::Centre, VerticalAlign::Top);
        y += kNotePitch;
    }
}

/// On the screen: one line in the upper right corner of the plot.
void drawNotes(SceneBuilder& builder, const PlotFrame& frame, const std::string& notes, const Theme& theme) {
    if (notes.empty())
        return;
    const std::string shown = builder.elide(notes, kNote, frame.plot.width - 8);
    const double w = builder.width(shown, kNote);
    builder.rectangle({frame.plot.right() - w - 8, frame.plot.y, w + 8, 15}, withAlpha(theme.canvas, 0.93));
    builder.text({frame.plot.right() - 4, frame.plot.y + 8}, shown, kNote, theme.text3, HorizontalAlign::Right, VerticalAlign::Middle);
}

ColourColumnSpec columnOf(const ProjectionMarks& marks, const Viewport& viewport) {
    if (!marks.scale)
        return {"viridis", false, marks.shadeTicks, {}};
    ColourColumnSpec column = marks.scale->column();
    column.handles = !viewport.forExport;
    return column;
}

std::vector<OptionNeed> KeyProjectionView::optionNeeds() const {
    const OptionIs axes{"method", {"pca"}}, unfolded{"method", {"tsne"}};
    return {{"perplexity", {unfolded}},
            {"iterations", {unfolded}},
            {"tsne_seed", {unfolded}},
            {"x_component", {axes}},
            {"y_component", {axes}},
            {"show_queries", {axes}},
            {"show_queries", {{"source", {"keys", "keys_pre_rope"}}}},
            {"centres", {{"colour_by", {"cluster"}}}},
            {"tint", {{"colour_by", {"cluster"}}}},
            {"crowd", {{"retained_only", {"false"}}}},
            {kValueRangeOption, {{"colour_by", {"position", "score", "norm"}}}}};
}

Scene KeyProjectionView::buildScene(const ViewInput& input, const ParameterValues& options, const Viewport& viewport) const {
    if (const std::string why = whyNoPicture(input, options); !why.empty())
        return emptyScene(why, viewport);
    const Theme& theme = themeOf(viewport.theme);
    const PaneData& pane = *activePane(input);
    ProjectionMarks marks = makeMarks(input, pane, options);
    const Viewport::Range range = viewport.range.value_or(fullRange(input, marks));
    marks.crowd = crowdIn(marks, projectionOf(input), viewport, range, options.choice("crowd"));
    const Room room = roomFor(viewport, projectionOf(input));
    Scene scene;
    scene.width = viewport.width;
    scene.height = viewport.height;
    scene.background = theme.canvas;
    SceneBuilder builder(scene, *viewport.text);

    PlotFrame frame;
    frame.x = axisOf(projectionOf(input), marks.xAxis, range.xMin, range.xMax);
    frame.y = axisOf(projectionOf(input), marks.yAxis, range.yMin, range.yMax);
    const std::string notes = fmt::format("{}", fmt::join(notesOf(input, pane, marks, frame, room), " · "));
    const std::vector<std::string> caption = room.caption ? captionLines(builder, notes, viewport) : std::vector<std::string>{};
    const std::vector<LegendEntry> legend = room.legend ? legendOf(input, pane, marks, theme) : std::vector<LegendEntry>{};
    const double top = room.legend ? 26 + furtherLegendRows(viewport, legend) : 4, noteHeight = room.caption ? kNotePitch * static_cast<double>(caption.size()) + 4 : room.axes.titles ? 4 : 0;
    const bool scale = !marks.shade.empty() && viewport.width >= 300 && viewport.height >= 150;
    const Box area{8, top, viewport.width - 12 - (scale ? kLabelledColumnWidth + 6 : 0), viewport.height - top - noteHeight - 4};
    frame.plot = plotBoxFor(area, frame.y, room.axes, *viewport.text);
    if (!viewport.range)
        makeAspectEqual(frame.x, frame.y, frame.plot);
    frame.plot = plotBoxFor(area, frame.y, room.axes, *viewport.text);

    shortenTitle(frame.x, frame.plot.width, *viewport.text);
    shortenTitle(frame.y, frame.plot.height, *viewport.text);

    drawGrid(builder, frame, theme);
    drawMarks(builder, frame, input, pane, marks, theme);
    drawAxes(builder, frame, room.axes, theme);
    if (scale)
        drawColourColumn(builder, {frame.plot.right() + 10, frame.plot.y, kLabelledColumnWidth, frame.plot.height}, columnOf(marks, viewport), theme);
    drawTopLegend(builder, viewport, legend, frame.plot.x, 15);

    if (room.caption)
        drawCaption(builder, caption, viewport);
    else
        drawNotes(builder, frame, notes, theme);
    scene.plot = frame.plot;
    scene.xMin = frame.x.low, scene.xMax = frame.x.high, scene.yMin = frame.y.low, scene.yMax = frame.y.high;
    return scene;
}

/// How far the picture may be believed.
std::string tsneFinding(const TsneRun& run) {
    if (run.iteration < run.request.iterations)
        return tsneNote(run);
    return fmt::format("{} % of each token's {} nearest neighbours in the head are its nearest here too (t-SNE, {})",
                       formatFixed(100 * run.neighboursKept, 1), kJudgedNeighbours, tsneLabel(run));
}

/// Share of the tokens farthest from the mean of the keys (outermost tenth in the picture) that are kept.
std::string rimFinding(const ViewInput& input, const PaneData& pane, const ProjectionMarks& marks) {
    std::vector<std::pair<double, TokenIndex>> distances;
    for (TokenIndex t = 0; t < static_cast<TokenIndex>(pane.result->visible); ++t) {
        const Point p = keyPoint(projectionOf(input), marks, t);
        distances.push_back({-std::hypot(p.x, p.y), t});
    }
    std::sort(distances.begin(), distances.end());
    const std::size_t rim = std::max<std::size_t>(1, distances.size() / 10);
    const auto kept = std::count_if(distances.begin(), distances.begin() + static_cast<std::ptrdiff_t>(rim), [&](const auto& d) {
        return marks.states[static_cast<std::size_t>(d.second)] != TokenState::Evicted;
    });
    return fmt::format("{} keeps {} of the {} tokens farthest from the mean in this plane, at {} kept overall", pane.policyName,
                       formatCount(kept), formatCount(static_cast<std::int64_t>(rim)), keptShare(*pane.result, input.kvHead));
}

std::unique_ptr<const ColourScale> KeyProjectionView::scaleOf(const ViewInput& input, const ParameterValues& options) const {
    if (!whyNoPicture(input, options).empty())
        return nullptr;
    const ProjectionMarks marks = makeMarks(input, *activePane(input), options);
    return marks.scale ? std::make_unique<const ValueScale>(*marks.scale) : nullptr;
}

/// Of the colour column alone: a token's read-out is the common one.
PointFacts KeyProjectionView::factsAt(const ViewInput& input, const ParameterValues& options, const Scene& scene, Point at) const {
    const auto scale = placeOnColumn(scene, at) ? scaleOf(input, options) : nullptr;
    return scale ? rangeFacts(*scale, scene, at) : PointFacts{};
}

std::string KeyProjectionView::finding(const ViewInput& input, const ParameterValues& options) const {
    if (const std::string why = whyNoPicture(input, options); !why.empty())
        return why;
    if (const auto& run = projectionOf(input).tsne)
        return tsneFinding(*run);
    const PaneData& pane = *activePane(input);
    const bool chosen = !input.focus.selected.empty();
    const auto tokens = beforeCut(input, chosen ? input.focus.selected : tokensOfKind(*input.capture, SegmentKind::Needle));
    if (tokens.empty())
        return rimFinding(input, pane, makeMarks(input, pane, options));
    const auto total = static_cast<std::int64_t>(tokens.size());
    return fmt::format("{} of {} {} tokens evicted by {} at {}", formatCount(total - keptAmong(input, pane, tokens)),
                       formatCount(total), chosen ? selectionWord(input.focus) : "needle", pane.policyName,
                       keptShare(*pane.result, input.kvHead));
}

ViewTable KeyProjectionView::table(const ViewInput& input, const ParameterValues& options) const {
    ViewTable table;
    table.columns = {"position", "text", "segment", "state", "x", "y", "cluster"};
    if (!whyNoPicture(input, options).empty())
        return table;
    auto marks = std::make_shared<const ProjectionMarks>(makeMarks(input, *activePane(input), options));
    table.rowCount = static_cast<std::int64_t>(marks->states.size());
    table.cell = [capture = input.capture, projection = dataAs<ProjectionData>(input), marks](std::int64_t row, int column) -> std::string {
        const auto token = static_cast<TokenIndex>(row);
        static const char* const kStates[] = {"kept", "protected", "evicted", "after the cut"};
        switch (column) {
        case 0: return std::to_string(row);
        case 1: return displayText(capture->tokens().textOf(token));
        case 2: return segmentOf(*capture, token);
        case 3: return kStates[static_cast<int>(marks->states[static_cast<std::size_t>(row)])];
        case 4: return fmt::format("{:.6g}", keyPoint(*projection, *marks, token).x);
        case 5: return fmt::format("{:.6g}", keyPoint(*projection, *marks, token).y);
        default: return projection->cluster.empty() ? "" : std::to_string(projection->cluster[static_cast<std::size_t>(row)]);
        }
    };
    return table;
}

} // namespace

const View& keyProjectionView() {
    static const KeyProjectionView view;
    return view;
}

} // namespace kvscope
