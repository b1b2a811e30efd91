// What the expected answer needs: the loss without each chunk, scores of the tokens, and what the panes keep of them.
#include "core/parameters/parameter_rows.h"
#include "views/answer_needs/answer_needs_data.h"
#include "views/common/chart.h"
#include "views/common/pane_identity.h"
#include "views/common/view_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace kvscope {

namespace {

using Data = AnswerNeedsData;
constexpr double kLane = 14; // height in pixels of a pane's lane
constexpr double kLetter = 12, kNumbers = 122, kLeastWithNumbers = 340;

ParameterTable makeOptions() {
    return {integerRow("chunk", "Chunk", "c", "tokens", {1, 4096, 64, 1, true}, Stage::Features,
                       "Tokens that are hidden together. Smaller chunks take more passes of the model.",
                       "this program's"),
            integerRow("steps", "Steps of the gradient", "", "passes", {0, 128, 12, 1}, Stage::Features,
                       "Passes that the scores of tokens take; 1: the gradient with the full cache, 0: no scores.",
                       "Sundararajan et al. 2017")};
}

std::string signedNat(double rise) { return (rise >= 0 ? "+" : "") + formatFixed(rise, 3); }

std::string rangeText(const std::pair<TokenIndex, TokenIndex>& chunk) {
    return chunk.second - chunk.first == 1
               ? "token " + formatCount(chunk.first)
               : fmt::format("tokens {} to {}", formatCount(chunk.first), formatCount(chunk.second - 1));
}

std::string riseText(const Data::Pane& pane) {
    if (!pane.error.empty()) return "no result";
    if (std::isnan(pane.rise)) return "…";
    return signedNat(pane.rise) + (std::isnan(pane.predicted) ? "" : " (" + signedNat(pane.predicted) + ")");
}

/// The chunk whose absence costs most; the number of chunks while none is known.
std::size_t decidingChunk(const Data& data) {
    std::size_t best = data.rises.size();
    for (std::size_t i = 0; i < data.rises.size(); ++i)
        if (!std::isnan(data.rises[i]) && (best == data.rises.size() || data.rises[i] > data.rises[best])) best = i;
    return best;
}

std::size_t knownChunks(const Data& data) {
    return static_cast<std::size_t>(std::ranges::count_if(data.rises, [](double rise) { return !std::isnan(rise); }));
}

std::vector<LegendEntry> legendOf(const ViewInput& input, const Data& data, ThemeId themeId) {
    const Theme& theme = themeOf(themeId);
    std::vector<LegendEntry> legend = {areaEntry("without the chunk", theme.off)};
    if (knownChunks(data) < data.answered) legend.push_back(areaEntry("NaN or infinite", theme.notANumber));
    if (data.steps > 0)
        legend.push_back(lineEntry(data.scores.empty() ? "scores: computing" : "first order: lines, (numbers)",
                                   {theme.query, 1.5, {}}));
    for (const Data::Pane& pane : data.panes)
        legend.push_back(identityOf(input, pane, themeId).legend(letteredName(pane)));
    return legend;
}

/// Smallest and largest value of bars and lines; the range includes 0.
std::pair<double, double> extentOf(const Data& data) {
    std::pair<double, double> extent{0, 0};
    for (const std::vector<double>* values : {&data.rises, &data.scores})
        for (const double value : *values)
            if (!std::isnan(value)) extent = {std::min(extent.first, value), std::max(extent.second, value)};
    return extent;
}

/// The heights of the picture, with room for the lanes above the highest bar.
void fitHeights(PlotFrame& frame, const Data& data) {
    const auto [low, high] = extentOf(data);
    const double span = std::max(high - low, 1e-6), lanes = kLane * static_cast<double>(data.panes.size()) + 6;
    const double share = std::clamp(lanes / std::max(frame.plot.height, 1.0), 0.0, 0.7);
    frame.y.low = low - 0.05 * span;
    frame.y.high = frame.y.low + (high + 0.05 * span - frame.y.low) / (1 - share);
}

void drawBars(SceneBuilder& builder, const Data& data, const PlotFrame& frame, const Theme& theme) {
    for (std::size_t i = 0; i < data.chunks.size(); ++i) {
        const double left = frame.toPixels(data.chunks[i].first, 0).x,
                     right = frame.toPixels(data.chunks[i].second, 0).x;
        const PickId pick{PickId::Kind::Cell, static_cast<std::int64_t>(i)};
        const double width = std::max(1.0, right - left - 1);
        if (std::isnan(data.rises[i])) {
            if (i < data.answered) // a chunk without a finite loss may be needed most
                builder.rectangle({left, frame.plot.y, width, frame.plot.height}, theme.notANumber, {}, 0, pick);
            continue;
        }
        const double zero = frame.toPixels(0, 0).y, end = frame.toPixels(0, data.rises[i]).y;
        builder.rectangle({left, std::min(zero, end), width, std::max(1.0, std::abs(zero - end))}, theme.off, {}, 0,
                          pick);
    }
}

/// One line for each column of pixels, of the token with the largest score in it.
void drawScores(SceneBuilder& builder, const Data& data, const PlotFrame& frame, const Theme& theme) {
    const double zero = frame.toPixels(0, 0).y;
    double column = -1, strongest = 0;
    const auto draw = [&] {
        if (strongest != 0)
            builder.line({column + 0.5, zero}, {column + 0.5, frame.toPixels(0, strongest).y}, {theme.query, 1.5, {}});
    };
    for (std::size_t token = 0; token < data.scores.size(); ++token) {
        const double x = std::floor(frame.toPixels(static_cast<double>(token) + 0.5, 0).x);
        if (x != column) {
            draw();
            column = x;
            strongest = 0;
        }
        if (std::abs(data.scores[token]) > std::abs(strongest)) strongest = data.scores[token];
    }
    draw();
}

void drawLanes(SceneBuilder& builder, const ViewInput& input, const Data& data, const PlotFrame& frame,
               ThemeId themeId) {
    const Theme& theme = themeOf(themeId);
    for (std::size_t row = 0; row < data.panes.size(); ++row) {
        const Data::Pane& pane = data.panes[row];
        const double top = frame.plot.y + kLane * static_cast<double>(row);
        const Colour colour = identityOf(input, pane, themeId).colour();
        builder.rectangle({frame.plot.x, top, frame.plot.width, kLane - 2}, theme.sunken);
        for (std::size_t i = 0; i < pane.kept.size(); ++i) {
            const double left = frame.toPixels(data.chunks[i].first, 0).x,
                         right = frame.toPixels(data.chunks[i].second, 0).x;
            builder.rectangle({left, top, std::max(1.0, right - left - 1), kLane - 2}, withAlpha(colour, pane.kept[i]),
                              {}, 0, {PickId::Kind::Cell, static_cast<std::int64_t>(i)});
        }
    }
}

/// Writes after each lane its letter and, where there is room, the measured and the predicted rise of the loss.
void drawNumbers(SceneBuilder& builder, const Data& data, const PlotFrame& frame, bool hasRoom, const Theme& theme) {
    for (std::size_t row = 0; row < data.panes.size(); ++row) {
        const Point at{frame.plot.right() + 5, frame.plot.y + kLane * (static_cast<double>(row) + 0.5) - 1};
        builder.label(at, std::string(1, data.panes[row].letter), {FontFace::Interface, 10, FontWeight::SemiBold},
                      theme.text2);
        if (hasRoom)
            builder.label({at.x + 11, at.y}, riseText(data.panes[row]), {FontFace::Monospace, 10}, theme.text1);
    }
}

class AnswerNeedsView final : public View {
public:
    AnswerNeedsView()
        : View({.id = "answer_needs",
                .name = "What decides",
                .summary = "Live: how much the answer's loss rises without each chunk, and what the panes keep of it",
                .paper = "integrated gradients, Sundararajan et al. 2017",
                .group = ViewGroup::Cost,
                .data = "answer_needs",
                .waiting = "Hiding the first chunks…"},
               makeOptions()) {}

    std::string whyNoPicture(const ViewInput& input, const ParameterValues& options) const override {
        if (const std::string why = View::whyNoPicture(input, options); !why.empty()) return why;
        return knownChunks(*dataAs<Data>(input)) > 0 ? "" : card().waiting;
    }

    Scene draw(const ViewInput& input, const ParameterValues&, const Viewport& viewport) const override {
        const auto data = dataAs<Data>(input);
        const Theme& theme = themeOf(viewport.theme);
        const auto n = static_cast<double>(data->chunks.back().second);
        const auto [low, high] = extentOf(*data);
        const bool hasRoom = viewport.width >= kLeastWithNumbers;
        Chart chart(viewport, legendOf(input, *data, viewport.theme),
                    {0, n, AxisScale::Position, "Token position (0-based)"},
                    {low, high, AxisScale::Linear, "Rise of the answer's loss, nat"}, hasRoom ? kNumbers : kLetter);
        PlotFrame& frame = chart.frame;
        fitHeights(frame, *data);
        if (viewport.range) { // with zoomed heights the lanes lie over the bars
            frame.x.low = viewport.range->xMin, frame.x.high = viewport.range->xMax;
            frame.y.low = viewport.range->yMin, frame.y.high = viewport.range->yMax;
        }
        SceneBuilder builder = chart.builder(viewport);
        drawGrid(builder, frame, theme);
        builder.pushClip(frame.plot);
        drawBars(builder, *data, frame, theme);
        drawScores(builder, *data, frame, theme);
        drawAcross(builder, frame, 0, {theme.axis, 1, {}});
        drawLanes(builder, input, *data, frame, viewport.theme);
        builder.popClip();
        Scene scene = finishChart(chart, input, viewport, true, true);
        SceneBuilder over(scene, *viewport.text);
        drawNumbers(over, *data, frame, hasRoom, theme);
        return scene;
    }

    std::string conclude(const ViewInput& input, const ParameterValues&) const override {
        const auto data = dataAs<Data>(input);
        const std::size_t known = knownChunks(*data), best = decidingChunk(*data);
        std::string text = fmt::format("Hiding {} raises the loss of the answer most, by {} nat over {}",
                                       rangeText(data->chunks[best]), formatFixed(data->rises[best], 3),
                                       formatFixed(data->fullLoss, 3));
        if (data->rises[best] <= 0)
            text = "No chunk is needed: hiding any of them does not raise the loss of the answer";
        std::string shares;
        for (const Data::Pane& pane : data->panes)
            if (best < pane.kept.size())
                shares += fmt::format("{}{} keeps {}", shares.empty() ? "; " : ", ", pane.letter,
                                      formatPercent(pane.kept[best]));
        if (data->rises[best] > 0) text += shares.empty() ? "" : shares + " of it";
        if (known < data->answered)
            text += fmt::format("; without {} of the chunks the loss is NaN or infinite", data->answered - known);
        return data->answered < data->chunks.size()
                   ? fmt::format("{} ({} of {} chunks so far)", text, data->answered, data->chunks.size())
                   : text;
    }

    ViewTable table(const ViewInput& input, const ParameterValues&) const override {
        const auto data = dataAs<Data>(input);
        std::vector<std::string> columns = {"begin", "end", "text", "rise of the loss", "scores"};
        if (!data) return tableOf(columns, {});
        for (const Data::Pane& pane : data->panes) columns.push_back(letteredName(pane) + " kept");
        std::vector<std::vector<std::string>> rows;
        for (std::size_t i = 0; i < data->chunks.size(); ++i) {
            const auto [begin, end] = data->chunks[i];
            std::string text;
            for (TokenIndex token = begin; token < end; ++token) text += input.capture->tokens().textOf(token);
            rows.push_back(tableRow(begin, end, text, data->rises[i], scoreOf(*data, i)));
            for (const Data::Pane& pane : data->panes)
                rows.back().push_back(i < pane.kept.size() ? tableNumber(pane.kept[i]) : "");
        }
        return tableOf(std::move(columns), std::move(rows));
    }

    PointFacts inspect(const ViewInput& input, const ParameterValues&, const Scene& scene, Point at) const override {
        const auto data = dataAs<Data>(input);
        const auto chunk = chunkAt(*data, scene, at);
        if (chunk == data->chunks.size()) return {};
        PointFacts facts;
        facts.token = static_cast<TokenIndex>(std::floor(scene.dataAt(at).x));
        facts.rows = {{"chunk", rangeText(data->chunks[chunk])}};
        if (!std::isnan(data->rises[chunk]))
            facts.rows.emplace_back("without it", signedNat(data->rises[chunk]) + " nat");
        else if (chunk < data->answered)
            facts.rows.emplace_back("without it", "NaN or infinite");
        if (!data->scores.empty()) {
            facts.rows.emplace_back("its scores", signedNat(scoreOf(*data, chunk)) + " nat");
            facts.rows.emplace_back("token's score", signedNat(data->scores[static_cast<std::size_t>(facts.token)]));
        }
        for (const Data::Pane& pane : data->panes)
            if (chunk < pane.kept.size())
                facts.rows.emplace_back(letteredName(pane), "keeps " + formatPercent(pane.kept[chunk]) + " of it");
        return facts;
    }

    std::vector<TokenIndex> tokensAt(const ViewInput& input, const ParameterValues&, const Scene& scene,
                                     Point at) const override {
        const auto data = dataAs<Data>(input);
        const std::size_t chunk = data ? chunkAt(*data, scene, at) : 0;
        if (!data || chunk == data->chunks.size()) return {};
        std::vector<TokenIndex> tokens(
            static_cast<std::size_t>(data->chunks[chunk].second - data->chunks[chunk].first));
        std::iota(tokens.begin(), tokens.end(), data->chunks[chunk].first);
        return tokens;
    }

private:
    /// NaN while the scores are not known.
    static double scoreOf(const Data& data, std::size_t chunk) {
        if (data.scores.empty()) return NAN;
        return std::accumulate(data.scores.begin() + data.chunks[chunk].first,
                               data.scores.begin() + data.chunks[chunk].second, 0.0);
    }
    /// The chunk whose column holds the point; the number of chunks where there is none.
    static std::size_t chunkAt(const Data& data, const Scene& scene, Point at) {
        if (!scene.plot.contains(at)) return data.chunks.size();
        const double token = std::floor(scene.dataAt(at).x);
        const auto found = std::ranges::find_if(
            data.chunks, [&](const auto& chunk) { return chunk.first <= token && token < chunk.second; });
        return static_cast<std::size_t>(found - data.chunks.begin());
    }
};

} // namespace

const View& answerNeedsView() { return onlyOne<AnswerNeedsView>(); }

} // namespace kvscope
