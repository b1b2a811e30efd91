// Leverage of each key, exact and sketched: concentration on the left, agreement on the right, or a single plot.
#include "core/parameters/parameter_rows.h"
#include "views/leverage/leverage_pictures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace kvscope {

namespace {

ParameterTable makeOptions() {
    constexpr const char* paper = "Compactor 3.1";
    return {
        choiceRow("picture", "Picture",
                  {{"overview", "Overview", "sorted and cumulative leverage and the scatter, as far as there is room"},
                   {"sorted", "Sorted", "leverage over rank, both logarithmic"},
                   {"cumulative", "Cumulative", "share of the sum on the best tokens"},
                   {"histogram", "Histogram", "tokens per bin of leverage"},
                   {"tokens", "Along the prompt", "leverage of every token with the line of the budget"},
                   {"spectrum", "Spectrum", "singular values of the keys"},
                   {"scatter", "Exact against sketched", "token by token, with the band of Theorem 2"}},
                  Stage::Select, "Which plot.", paper),
        choiceRow("sketch", "Sketch",
                  {{"gaussian", "Gaussian", "entries N(0, 1/k)"},
                   {"srht", "SRHT", "random signs, Walsh-Hadamard, k random columns"}},
                  Stage::Features, "The random matrix that the keys are multiplied by.", "Compactor Table 4"),
        integerRow(
            "sketch_size", "Sketch columns", "", "", {0, 256, 0}, Stage::Features,
            "Columns k of the sketch, at most the width of a key; 0: those of the active pane, else of the first "
            "pane with a sketch, else half that width, the paper's 64 of 128.",
            "Compactor 4: 64; both codes 48"),
        flagRow("centred", "Centre keys", false, Stage::Features,
                "Takes the mean key away first. Not in the paper, but in both codes (C2).", "kvpress, compactor-vllm"),
        realRow("epsilon", "ε of Theorem 2", "", {0.01, 0.99, 0.5}, Stage::Select,
                "Sets the width of the band, κ (1 + ε) / (1 − ε), and what k the theorem asks for.",
                "Compactor Theorem 2")};
}

/// The picture for the option, as far as the room allows.
std::string shownPicture(const ParameterValues& options, const Box& area) {
    const std::string& wanted = options.choice("picture");
    return wanted == "overview" && (area.width < 460 || area.height < 150) ? "sorted" : wanted;
}

/// Curve on the left, square scatter on the right, with the cumulative curve above it in the remaining room.
PlotFrame drawOverview(LeveragePainter& painter, const Box& area) {
    constexpr double kAxes = 22, kGap = 10, kLeastAbove = 104,
                     kLeastScatter = 170; // kAxes: by how much a square's area is wider than high
    double width = std::min(area.height + kAxes, 0.5 * area.width), above = area.height - (width - kAxes);
    if (above > kGap && area.height - kLeastAbove >= kLeastScatter) {
        above = std::max(above, kLeastAbove);
        width = std::min(width, area.height - above + kAxes);
        painter.cumulative({area.right() - width, area.y, width, above - kGap});
    } else {
        above = 0;
    }
    painter.scatter({area.right() - width, area.y + above, width, area.height - above});
    return painter.sorted({area.x, area.y, area.width - width - 12, area.height});
}

PlotFrame drawPicture(LeveragePainter& painter, const std::string& picture, const Box& area) {
    if (picture == "cumulative") return painter.cumulative(area);
    if (picture == "histogram") return painter.histogram(area);
    if (picture == "tokens") return painter.tokens(area);
    if (picture == "spectrum") return painter.spectrum(area);
    if (picture == "scatter") return painter.scatter(area);
    return picture == "overview" ? drawOverview(painter, area) : painter.sorted(area);
}

std::vector<std::int64_t> ranksOf(const std::vector<TokenIndex>& order) {
    std::vector<std::int64_t> ranks(order.size());
    for (std::size_t rank = 0; rank < order.size(); ++rank) ranks[order[rank]] = static_cast<std::int64_t>(rank);
    return ranks;
}

/// Both scores of a token with their ranks.
std::vector<std::pair<std::string, std::string>> factsOf(const LeverageData& data, TokenIndex token) {
    const auto rank = [&](const LeverageData::Scores& scores) {
        return formatCount(std::ranges::find(scores.order, token) - scores.order.begin());
    };
    const auto words = [&](const LeverageData::Scores& scores) {
        return fmt::format("{}  rank {}", formatShort(scores.scores[token]), rank(scores));
    };
    return {{"exact leverage", words(data.exact)},
            {fmt::format("sketched, k = {}", data.columns), words(data.sketched)}};
}

class LeverageView final : public View {
public:
    LeverageView()
        : View({.id = "leverage",
                .name = "Leverage",
                .summary = "How concentrated the leverage of the keys is, and what a sketch changes",
                .paper = "Compactor 3.1 and 3.2, Table 4, Theorem 2",
                .group = ViewGroup::Why,
                .needs = {{"epsilon", {{"picture", {"overview", "scatter"}}}}},
                .data = "leverage",
                .waiting = "Computing leverage…",
                .teaching = TeachingRole::Steps},
               makeOptions()) {}

    Scene draw(const ViewInput& input, const ParameterValues& options, const Viewport& viewport) const override {
        Scene scene = blankScene(viewport);
        SceneBuilder builder(scene, *viewport.text);
        const LeverageChoice choice = leverageChoice(input);
        LeveragePainter painter(builder, input, options, viewport, choice);
        const std::string picture = shownPicture(options, plotArea(viewport, {}));
        std::vector<LegendEntry> legend;
        const bool marksAlone = picture == "tokens" || picture == "scatter";
        if (!marksAlone) legend = painter.legend();
        if (marksAlone || picture == "overview")
            for (LegendEntry& entry : painter.markLegend()) legend.push_back(std::move(entry));
        const PlotFrame frame = drawPicture(painter, picture, plotArea(viewport, legend));
        drawTopLegend(builder, viewport, legend, frame.plot.x);
        drawProvenance(builder, input, viewport);
        scene.plot = frame.plot;
        if (picture == "tokens") setDataRange(scene, frame); // the only one with two linear axes worth zooming
        return scene;
    }

    std::string conclude(const ViewInput& input, const ParameterValues&) const override {
        const LeverageChoice choice = leverageChoice(input);
        const LeverageData& data = *choice.data;
        const auto n = static_cast<double>(data.exact.scores.size());
        if (choice.budget == 0)
            return fmt::format("The keys have rank {}: the mean leverage is {}, the largest {}", data.exact.rank,
                               formatShort(data.exact.sum / n),
                               formatShort(data.exact.scores[data.exact.order.front()]));
        const std::string whose = data.pane ? fmt::format(", pane {}'s k,", data.pane) : "",
                          exact = data.columns >= data.keyDim ? ": as wide as a key it is exact" : "";
        return fmt::format(
            "The best {} of {} tokens ({}) hold {} of the leverage; a sketch of {} of {} columns{} picks "
            "{} of them{}",
            formatCount(choice.budget), formatCount(std::llround(n)),
            formatPercent(static_cast<double>(choice.budget) / n), formatPercent(choice.shareOfBest(choice.budget)),
            data.columns, data.keyDim, whose, formatPercent(choice.overlap()), exact);
    }

    ViewTable table(const ViewInput& input, const ParameterValues& options) const override {
        const std::vector<std::string> columns = {"position",   "text",     "segment",       "exact",
                                                  "rank_exact", "sketched", "rank_sketched", "kept_by"};
        if (!whyNoPicture(input, options).empty()) return tableOf(columns, {});
        const LeverageChoice choice = leverageChoice(input);
        const auto data = choice.data;
        const auto rowAt = [choice, data, input, exact = ranksOf(data->exact.order),
                            sketched = ranksOf(data->sketched.order)](std::int64_t row) {
            static const char* const kept[] = {"neither", "exact", "sketched", "both"};
            const auto token = static_cast<TokenIndex>(row);
            return tableRow(row, tokenText(input, token), segmentOf(*input.capture, token), data->exact.scores[row],
                            exact[row], data->sketched.scores[row], sketched[row],
                            choice.budget == 0 ? "" : kept[choice.exact[row] + 2 * choice.sketched[row]]);
        };
        return tableOf(columns, std::ssize(data->exact.scores), rowAt);
    }

    PointFacts inspect(const ViewInput& input, const ParameterValues&, const Scene& scene, Point at) const override {
        const auto data = dataAs<LeverageData>(input);
        const PickId pick = pickAt(scene, at, 4);
        if (data->exact.order.empty()) return {};
        PointFacts facts;
        if (pick.kind == PickId::Kind::Token && pick.index < std::ssize(data->exact.scores)) {
            facts.rows = factsOf(*data, static_cast<TokenIndex>(pick.index));
            facts.token = static_cast<TokenIndex>(pick.index);
        } else if (pick.kind == PickId::Kind::Cell && scene.plot.width > 0) {
            const auto count = static_cast<double>(data->exact.order.size());
            const double rank = std::exp(std::log(std::max(2.0, count)) * (at.x - scene.plot.x) / scene.plot.width);
            const auto index = static_cast<std::size_t>(std::clamp(rank, 1.0, count)) - 1;
            facts.token = data->exact.order[index];
            facts.rows = factsOf(*data, facts.token);
            facts.rows.insert(facts.rows.begin(), {"token", quotedToken(input, facts.token)});
        }
        return facts;
    }
};

} // namespace

const View& leverageView() { return onlyOne<LeverageView>(); }

} // namespace kvscope
