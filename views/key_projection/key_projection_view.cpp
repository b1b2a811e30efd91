// Keys of one head on two of their principal axes, or unfolded by t-SNE. All panes share the places of the tokens and
// the range, so that two panes differ by their policy alone.
#include "core/parameters/parameter_rows.h"
#include "core/run/run.h"
#include "views/common/view_options.h"
#include "views/key_projection/projection_frame.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace kvscope {

namespace {

ParameterTable makeOptions() {
    constexpr const char *axes = "KeyDiff Figs. 4, 5", *marks = "KeyDiff Figs. 5, 8-11";
    constexpr const char* unfolding = "SubGen Fig. 1; van der Maaten and Hinton, JMLR 9 (2008)";
    return {
        choiceRow("method", "Method",
                  {{"pca", "principal axes", "a plane through the vectors, with the variance that it holds"},
                   {"tsne", "t-SNE", "up to 65,536 tokens; takes seconds"}},
                  Stage::Features,
                  "How tokens find their places. t-SNE keeps neighbours together and nothing else: no axes, no "
                  "distances, no densities.",
                  unfolding),
        realRow("perplexity", "t-SNE perplexity", "", {2, 200, 30}, Stage::Features,
                "How many neighbours a token looks at, about.", unfolding),
        integerRow("iterations", "t-SNE iterations", "", "", {50, 5000, 750}, Stage::Features,
                   "Steps of the descent; the first third of them, 250 at most, pull neighbours together twelvefold.",
                   unfolding),
        integerRow("tsne_seed", "t-SNE seed", "", "", {0, 9999, 0}, Stage::Features,
                   "Of the random start. What changes with it is the method's doing, not the data's.", unfolding),
        integerRow("x_component", "Horizontal component", "", "", {1, 5, 1}, Stage::Select,
                   "Principal component along x; t-SNE has none.", axes),
        integerRow("y_component", "Vertical component", "", "", {1, 5, 2}, Stage::Select,
                   "Principal component along y; t-SNE has none.", axes),
        choiceRow(
            "source", "Source",
            {{"keys", "keys after RoPE", "as attention reads them"},
             {"keys_pre_rope", "keys before RoPE", "content alone"},
             {"values", "values", "of the KV head (SubGen Fig. 1)"},
             {"queries", "queries", "of the query head, where all were captured"}},
            Stage::Features,
            "Keys as attention reads them, or before the rotary embedding, where content is not mixed with position.",
            "KeyDiff Figs. 4, 11"),
        choiceRow("colour_by", "Colour",
                  {{"state", "State", "kept blue, evicted orange"},
                   {"position", "Position", "in the prompt"},
                   {"score", "Score", "of this pane's policy"},
                   {"norm", "Norm", "of the projected vector"},
                   {"cluster", "Cluster", "the nearest of the greedy centres, which are marked (SubGen Fig. 1)"},
                   {"panes", "Panes", "how many panes keep the token"}},
                  Stage::Select, "What the colour of a mark says; fill always says kept, a ring evicted.",
                  "KeyDiff Figs. 4, 5"),
        integerRow("centres", "Centres", "", "", {2, 64, 16}, Stage::Select,
                   "Greedy k-centers of the vectors in the head, the first token first; colour by cluster shows them.",
                   "SubGen section 3.2, Fig. 1"),
        flagRow("tint", "Voronoi tint", false, Stage::Select,
                "With colour by cluster: tints the plane by the centre that is nearest in it.", "SubGen Fig. 1"),
        choiceRow(
            "crowd", "Crowds",
            {{"auto", "density where crowded",
              "marks, and where more than 20,000 lie in the range (fewer in a small picture) their density; zoom in "
              "for marks"},
             {"density", "density", "evicted tokens counted in cells, a 200th of the range a side; many kept ones too"},
             {"marks", "marks", "every kept token; of a crowd of evicted ones only every n-th"}},
            Stage::Select, "How many tokens are drawn.", marks),
        flagRow("retained_only", "Kept tokens only", false, Stage::Select,
                "Hides evicted tokens, so that only what is left is seen.", marks),
        flagRow("show_queries", "Queries", false, Stage::Select,
                "Shows the query head's captured queries on the axes of the keys.", marks),
        flagRow("show_after_cut", "Tokens after the cut", false, Stage::Select,
                "Shows the keys that no policy has seen as small grey dots.", marks),
        valueRangeOption(checkShadeRange)};
}

/// How many neighbours of the head the embedding preserves, or how far it has come.
std::string tsneFinding(const TsneRun& run) {
    if (run.iteration < run.request.iterations) return tsneNote(run);
    return fmt::format("{} % of each token's {} nearest neighbours in the head are its nearest here too (t-SNE, {})",
                       formatFixed(100 * run.neighboursKept, 1), kEvaluatedNeighbours, tsneLabel(run));
}

/// Share of the tokens farthest from the mean of the keys (outermost tenth in the picture) that are kept.
std::string rimFinding(const ViewInput& input, const PaneData& pane, const ProjectionMarks& marks) {
    const ProjectionData& projection = projectionOf(input);
    std::vector<std::pair<double, TokenIndex>> distances;
    for (TokenIndex t = 0; t < static_cast<TokenIndex>(pane.result->visible); ++t) {
        const Point p = keyPoint(projection, marks, t);
        distances.push_back({-std::hypot(p.x, p.y), t});
    }
    const std::size_t rim = std::max<std::size_t>(1, distances.size() / 10);
    const auto end = distances.begin() + static_cast<std::ptrdiff_t>(rim);
    std::ranges::nth_element(distances, end - 1);
    const auto kept = std::count_if(distances.begin(), end,
                                    [&](const auto& d) { return marks.states[d.second] != TokenState::Evicted; });
    return fmt::format("{} keeps {} of the {} farthest from the mean in this plane, at {} kept overall",
                       pane.policyName, formatCount(kept), formatCounted(static_cast<std::int64_t>(rim), "token"),
                       keptBudget(*pane.result, input.kvHead));
}

std::vector<OptionNeed> optionNeeds() {
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

class KeyProjectionView final : public View {
public:
    KeyProjectionView()
        : View({.id = "key_projection",
                .name = "Key projection",
                .summary = "Keys of one head on two principal axes or by t-SNE, kept against evicted",
                .paper = "KeyDiff Figs. 4, 5, 8-11; SubGen Fig. 1",
                .group = ViewGroup::Kept,
                .needs = optionNeeds(),
                .perPane = true,
                .data = "projection"},
               makeOptions()) {}

    bool showsOtherPanes(const ParameterValues& options) const override {
        return options.choice("colour_by") == "panes";
    }

    std::string whyNoPicture(const ViewInput& input, const ParameterValues& options) const override {
        if (const std::string why = whyEmpty(input, activePane(input)); !why.empty()) return why;
        if (!input.data.error.empty()) return input.data.error;
        if (input.data.value) return "";
        return options.choice("method") == "tsne" ? "Looking for the neighbours of every token, for t-SNE…"
                                                  : "Computing the principal axes…";
    }

    Scene draw(const ViewInput& input, const ParameterValues& options, const Viewport& viewport) const override {
        const Theme& theme = themeOf(viewport.theme);
        const PaneData& pane = *activePane(input);
        ProjectionMarks marks = makeMarks(input, pane, options);
        marks.range = viewport.range ? *viewport.range : fullRange(input, marks);
        marks.crowd = crowdIn(marks, projectionOf(input), viewport, options.choice("crowd"));
        Scene scene = blankScene(viewport);
        SceneBuilder builder(scene, *viewport.text);

        ProjectionFrame frame(input, pane, marks, viewport, builder);
        frame.drawBehind();
        drawMarks(builder, frame.plot(), input, pane, marks, theme);
        frame.drawAround();
        setDataRange(scene, frame.plot());
        return scene;
    }

    std::string conclude(const ViewInput& input, const ParameterValues& options) const override {
        if (const auto& run = projectionOf(input).tsne) return tsneFinding(*run);
        const PaneData& pane = *activePane(input);
        const bool chosen = !input.focus.selected.empty();
        const auto [hit, of] =
            keptAmong(input, pane, chosen ? input.focus.selected : tokensOfKind(*input.capture, SegmentKind::Needle));
        if (of == 0) return rimFinding(input, pane, makeMarks(input, pane, options));
        return fmt::format("{} of {} {} tokens evicted by {} at {}", formatCount(of - hit), formatCount(of),
                           chosen ? selectionWord(input.focus) : "needle", pane.policyName,
                           keptBudget(*pane.result, input.kvHead));
    }

    ViewTable table(const ViewInput& input, const ParameterValues& options) const override {
        const std::vector<std::string> columns = {"position", "text", "segment", "state", "x", "y", "cluster"};
        if (!whyNoPicture(input, options).empty()) return tableOf(columns, {});
        const ProjectionMarks marks = makeMarks(input, *activePane(input), options);
        return tableOf(columns, std::ssize(marks.states), [input, marks](std::int64_t row) {
            const auto token = static_cast<TokenIndex>(row);
            const Point place = keyPoint(projectionOf(input), marks, token);
            const auto& cluster = projectionOf(input).cluster;
            return tableRow(row, tokenText(input, token), segmentOf(*input.capture, token),
                            stateName(marks.states[row]), fmt::format("{:.6g}", place.x),
                            fmt::format("{:.6g}", place.y), cluster.empty() ? "" : std::to_string(cluster[row]));
        });
    }

    std::unique_ptr<const ColourScale> colourScale(const ViewInput& input,
                                                   const ParameterValues& options) const override {
        if (!whyNoPicture(input, options).empty()) return nullptr;
        const ProjectionMarks marks = makeMarks(input, *activePane(input), options);
        return marks.scale ? std::make_unique<const ValueScale>(*marks.scale) : nullptr;
    }
};

} // namespace

const View& keyProjectionView() { return onlyOne<KeyProjectionView>(); }

} // namespace kvscope
