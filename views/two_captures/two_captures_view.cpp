// Two prompts of one model under the same policies: a table of both and their difference, and every head as a mark
// whose distance from the diagonal is that difference.
#include "core/parameters/parameter_rows.h"
#include "views/common/chart.h"
#include "views/common/measure_options.h"
#include "views/common/pane_identity.h"
#include "views/common/view_facts.h"
#include "views/two_captures/two_captures_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

namespace kvscope {

namespace {

using Pane = TwoCapturesData::Pane;
using Head = TwoCapturesData::Head;

constexpr double kRow = 19, kBadge = 16, kNumberColumn = 64, kLeastName = 84, kWidestTable = 640, kBeside = 640;
constexpr double kLeastPlot = 120; ///< a smaller one is left out
constexpr std::int64_t kPickStride = 1 << 20;
const TextStyle kName{FontFace::Interface, 12}, kHeading{FontFace::Interface, 11, FontWeight::SemiBold},
    kNumber{FontFace::Monospace, 11};

ParameterTable makeOptions() {
    constexpr const char* source = "this program's";
    return {choiceRow("measure", "Measure", measureChoices(), Stage::Features, "What is compared on both captures.",
                      source),
            choiceRow("heads", "Heads",
                      {{"layer", "Shown layer", "the heads of the layer shown"},
                       {"model", "Whole model", "the heads of all captured layers"}},
                      Stage::Features, "Which heads are drawn as marks.", source)};
}

/// The decimals of a column: as many as the number with the most needs, so that "0.24" stands as "0.240" below "0.811".
int decimalsOf(const TwoCapturesData& data) {
    int decimals = 0;
    for (const Pane& pane : data.panes)
        for (const double value : {pane.first, pane.second, pane.second - pane.first}) {
            const std::string text = formatShort(value);
            const std::size_t point = text.find('.');
            if (point != std::string::npos && text.find('e') == std::string::npos)
                decimals = std::max(decimals, static_cast<int>(text.size() - point) - 1);
        }
    return decimals;
}

/// A number beyond what decimals show has an exponent. A dash where the number is not known.
std::string numberText(double value, int decimals) {
    if (std::isnan(value)) return "–";
    const std::string text = formatShort(value);
    const bool hasDecimals = std::abs(value) < 1000 && text.find('e') == std::string::npos;
    return hasDecimals ? formatFixed(value, decimals) : text;
}

std::string numberText(double value) { return std::isnan(value) ? "–" : formatShort(value); }

std::string signedText(double value) { return (value > 0 ? "+" : "") + formatShort(value); }
std::string signedText(double value, int decimals) { return (value > 0 ? "+" : "") + numberText(value, decimals); }

/// A dash where the number is not known: a recorded list may leave out the head.
std::string keptText(double tokens) { return std::isnan(tokens) ? "–" : formatCount(std::llround(tokens)); }

double differenceOf(const Pane& pane) { return pane.second - pane.first; }

bool hasNumbers(const Pane& pane) { return pane.refusal.empty() && !std::isnan(differenceOf(pane)); }

bool isShown(const ViewInput& input, const TwoCapturesData& data, const Head& head) {
    if (head.layer != input.layer.value) return false;
    if (!data.perQueryHead) return head.head == input.kvHead.value;
    return input.capture->info().layerInfo(input.layer).gqaGroupOf.at(head.head) == input.kvHead.value;
}

/// What a reader of the numbers has to know about the pane's runs, for the end of the sentence.
std::string remarksOf(const TwoCapturesData& data) {
    std::string text;
    for (const Pane& pane : data.panes) {
        if (pane.nothingFirst || pane.nothingSecond)
            text += fmt::format(" · nothing was balanced for {} on {}: sinks and recents take the whole budget",
                                pane.letter,
                                pane.nothingFirst && pane.nothingSecond ? "both captures"
                                : pane.nothingFirst                     ? data.first.name
                                                                        : data.second.name);
        for (const auto& [tau, name] :
             {std::pair(pane.tauFirst.get(), &data.first.name), {pane.tauSecond.get(), &data.second.name}})
            if (tau)
                text += fmt::format(" · {}: {} kept on {} for tau = {}{}", pane.letter, formatPercent(tau->retention),
                                    *name, tau->asked.value, tau->proxy ? " by proxy" : "");
    }
    return text;
}

/// The same for the pane's row of the table.
std::string notesOf(const Pane& pane) {
    std::string text;
    for (const auto& [side, nothing, tau] : {std::tuple("first", pane.nothingFirst, pane.tauFirst.get()),
                                             {"second", pane.nothingSecond, pane.tauSecond.get()}}) {
        if (nothing) text += fmt::format("{}{}: nothing balanced", text.empty() ? "" : "; ", side);
        if (tau) text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", side, tau->text());
    }
    return text;
}

/// The table: panes in rows, the measure and the kept tokens of both captures in columns.
class TablePainter {
public:
    TablePainter(SceneBuilder& builder, const TwoCapturesData& data, const Box& box, ThemeId theme)
        : m_builder(builder), m_data(data), m_box(box), m_themeId(theme), m_theme(themeOf(theme)),
          m_withKept(box.width >= kLeastName + kBadge + 5 * kNumberColumn), m_decimals(decimalsOf(data)) {}

    static double height(const TwoCapturesData& data) {
        return kRow * (2 + static_cast<double>(data.panes.size())) + 4;
    }

    void draw() {
        const double right = m_box.right();
        const double measure = m_withKept ? right - 2 * kNumberColumn : right;
        heading(measure - 3 * kNumberColumn, measure, withUnit(m_data.what, m_data.unit), m_box.y + kRow / 2);
        if (m_withKept) heading(measure, right, "Kept tokens", m_box.y + kRow / 2);
        const double y = m_box.y + 1.5 * kRow;
        cells(y, {"1", "2", "2 − 1", "1", "2"}, m_theme.text2, kHeading);
        m_builder.line({m_box.x, y + kRow / 2}, {right, y + kRow / 2}, {m_theme.border, 1, {}});
        for (std::size_t i = 0; i < m_data.panes.size(); ++i)
            row(m_data.panes[i], m_box.y + kRow * (2.5 + static_cast<double>(i)) + 2);
    }

private:
    void heading(double left, double right, const std::string& words, double y) {
        m_builder.label({right - 4, y}, m_builder.elide(words, kHeading, right - left - 8), kHeading, m_theme.text1,
                        HorizontalAlign::Right);
    }
    void cells(double y, const std::vector<std::string>& texts, Colour colour, const TextStyle& style) {
        const std::size_t count = m_withKept ? 5 : 3;
        double right = m_box.right() - kNumberColumn * static_cast<double>(count - 1);
        for (std::size_t i = 0; i < count; ++i, right += kNumberColumn)
            m_builder.label({right - 4, y}, texts[i], style, colour, HorizontalAlign::Right);
    }
    void row(const Pane& pane, double y) {
        drawBadge(m_builder, pane.letter, pane.policyId, {m_box.x + kBadge / 2, y}, m_themeId, kBadge);
        const double names = m_box.x + kBadge + 6;
        const std::string title = paneTitle(pane);
        if (!pane.refusal.empty()) {
            m_builder.label({names, y}, m_builder.elide(title + ": " + pane.refusal, kName, m_box.right() - names),
                            kName, m_theme.text2);
            return;
        }
        const double room = m_box.right() - kNumberColumn * (m_withKept ? 5 : 3) - names;
        m_builder.label({names, y}, m_builder.elide(title, kName, room), kName, m_theme.text1);
        cells(y,
              {numberText(pane.first, m_decimals), numberText(pane.second, m_decimals),
               signedText(differenceOf(pane), m_decimals), keptText(pane.keptFirst), keptText(pane.keptSecond)},
              m_theme.text1, kNumber);
    }

    SceneBuilder& m_builder;
    const TwoCapturesData& m_data;
    Box m_box;
    ThemeId m_themeId;
    const Theme& m_theme;
    bool m_withKept;
    int m_decimals; ///< of the measure
};

/// A mark per head: its number on the first capture along x, on the second along y.
PlotFrame drawHeads(SceneBuilder& builder, const ViewInput& input, const TwoCapturesData& data, const Box& area,
                    const Viewport& viewport) {
    double low = 0, high = 0;
    for (const Pane& pane : data.panes)
        for (const Head& head : pane.heads)
            for (const double value : {head.first, head.second})
                if (std::isfinite(value)) low = std::min(low, value), high = std::max(high, value);
    if (high <= low) high = low + 1;
    const double margin = 0.05 * (high - low);
    const AxisSpec axis{low < 0 ? low - margin : low, high + margin, AxisScale::Linear, {}};
    SubPlot plot(viewport, area, axis, axis);
    plot.frame.x.title = "1, " + data.first.name;
    plot.frame.y.title = "2, " + data.second.name;
    const double side = std::min(plot.frame.plot.width, plot.frame.plot.height); // equal scales on both axes
    plot.frame.plot.width = plot.frame.plot.height = side;
    const Theme& theme = themeOf(viewport.theme);
    plot.open(builder, theme);
    builder.line(plot.frame.toPixels(axis.low, axis.low), plot.frame.toPixels(axis.high, axis.high),
                 {theme.axis, 1, {5, 3}});
    for (std::size_t p = 0; p < data.panes.size(); ++p) {
        const Pane& pane = data.panes[p];
        const PaneIdentity identity = identityOf(input, pane, viewport.theme);
        GatheredMarks others, shown;
        for (std::size_t i = 0; i < pane.heads.size(); ++i) {
            const Head& head = pane.heads[i];
            if (std::isnan(head.first) || std::isnan(head.second)) continue;
            (isShown(input, data, head) ? shown : others)
                .add(plot.frame.toPixels(head.first, head.second), static_cast<std::int64_t>(p) * kPickStride + i);
        }
        builder.points(
            others.as("heads", PickId::Kind::Cell, identity.marker(), 3, kTransparent, {identity.colour(), 1.2, {}}));
        const Stroke edge = markerArms(identity.marker(), 4.5).empty()
                                ? Stroke{theme.casing, 1, {}}
                                : Stroke{identity.colour(), 2, {}}; // crosses are strokes alone
        builder.points(shown.as("heads shown", PickId::Kind::Cell, identity.marker(), 4.5, identity.colour(), edge));
    }
    return plot.close(builder, theme);
}

std::vector<LegendEntry> legendOf(const TwoCapturesData& data, const Theme& theme, bool withHeads) {
    const auto side = [](const char* number, const TwoCapturesData::Side& of) {
        return wordsEntry(fmt::format("{}  {}, {} tokens seen", number, of.name, formatCount(of.visible)));
    };
    std::vector<LegendEntry> legend = {side("1", data.first), side("2", data.second)};
    if (withHeads) {
        legend.push_back(markEntry("KV head shown", Marker::Circle, theme.text2, 3.5));
        legend.push_back(ringEntry(data.perQueryHead ? "other query heads" : "other KV heads", {theme.text2, 1.2, {}}));
    }
    for (const Pane& pane : data.panes)
        if (pane.nothingFirst || pane.nothingSecond)
            legend.push_back(wordsEntry(fmt::format("{}: nothing balanced on {}", pane.letter,
                                                    pane.nothingFirst && pane.nothingSecond ? "1 and 2"
                                                    : pane.nothingFirst                     ? "1"
                                                                                            : "2")));
    return legend;
}

/// "A KeyDiff is best on both captures; ". Where the best panes are equal, none of them is named.
std::string bestWords(const TwoCapturesData& data, const Pane& first, const Pane& second) {
    const auto isTied = [&](const Pane& best, double Pane::*side) {
        return std::ranges::any_of(data.panes, [&](const Pane& pane) {
            return &pane != &best && hasNumbers(pane) && pane.*side == best.*side;
        });
    };
    const bool tiedFirst = isTied(first, &Pane::first), tiedSecond = isTied(second, &Pane::second);
    if (tiedFirst && tiedSecond) return "The best are equal on both captures; ";
    if (tiedFirst)
        return fmt::format("The best are equal on {}, {} is best on {}; ", data.first.name, letteredName(second),
                           data.second.name);
    if (tiedSecond)
        return fmt::format("{} is best on {}, the best are equal on {}; ", letteredName(first), data.first.name,
                           data.second.name);
    return &first == &second ? fmt::format("{} is best on both captures; ", letteredName(first))
                             : fmt::format("{} is best on {}, {} on {}; ", letteredName(first), data.first.name,
                                           letteredName(second), data.second.name);
}

class TwoCapturesView final : public View {
public:
    TwoCapturesView()
        : View({.id = kTwoCaptures,
                .name = "Two captures",
                .summary = "The same policies on two prompts of one model, and the difference head by head",
                .paper = "this program's",
                .group = ViewGroup::Cost,
                .data = kTwoCaptures,
                .waiting = "Running the policies on both captures…",
                .needsPane = true},
               makeOptions()) {}

    Scene draw(const ViewInput& input, const ParameterValues&, const Viewport& viewport) const override {
        const auto data = dataAs<TwoCapturesData>(input);
        const Theme& theme = themeOf(viewport.theme);
        Scene scene = blankScene(viewport);
        SceneBuilder builder(scene, *viewport.text);
        const Box area = plotArea(viewport, legendOf(*data, theme, true));
        const double height = TablePainter::height(*data);
        // The square plot stands where it gets larger: right of the table or below it.
        const bool beside = area.width >= kBeside &&
                            std::min(0.5 * area.width, area.height) >= std::min(area.width, area.height - height);
        const double width =
            beside ? std::clamp(area.width - area.height - 40, 0.5 * area.width, 0.6 * area.width) : area.width;
        TablePainter(builder, *data, {area.x + 4, area.y + 4, std::min(width, kWidestTable) - 8, height},
                     viewport.theme)
            .draw();
        const double left = beside ? area.x + std::min(width, kWidestTable) + 12 : area.x,
                     top = beside ? area.y : area.y + height + 10;
        const Box plot{left, top, area.right() - left, area.bottom() - top};
        const bool hasRoom = plot.width >= kLeastPlot && plot.height >= kLeastPlot;
        if (hasRoom) scene.plot = drawHeads(builder, input, *data, plot, viewport).plot;
        drawTopLegend(builder, viewport, legendOf(*data, theme, hasRoom), 12);
        drawProvenance(builder, input, viewport);
        return scene;
    }

    std::string conclude(const ViewInput& input, const ParameterValues&) const override {
        const auto data = dataAs<TwoCapturesData>(input);
        const Pane *best = nullptr, *bestSecond = nullptr, *most = nullptr;
        const auto better = [&](double a, double b) { return data->higherIsBetter ? a > b : a < b; };
        for (const Pane& pane : data->panes) {
            if (!hasNumbers(pane)) continue;
            if (!best || better(pane.first, best->first)) best = &pane;
            if (!bestSecond || better(pane.second, bestSecond->second)) bestSecond = &pane;
            if (!most || std::abs(differenceOf(pane)) > std::abs(differenceOf(*most))) most = &pane;
        }
        if (!most) return "No policy has a number on both captures" + remarksOf(*data);
        const std::string numbers =
            fmt::format("{} {}{} on {}, {} on {} ({}){}", data->ofPane ? uncapitalised(data->what) : data->what,
                        formatShort(most->first), unitBehind(data->unit), data->first.name, formatShort(most->second),
                        data->second.name, signedText(differenceOf(*most)), remarksOf(*data));
        if (!data->ofPane) return numbers;
        std::string words;
        if (!data->takesNoSide && data->panes.size() > 1) words = bestWords(*data, *best, *bestSecond);
        if (differenceOf(*most) == 0)
            return fmt::format("{}{} pane's {} differs{}", words, words.empty() ? "No" : "no",
                               uncapitalised(data->what), remarksOf(*data));
        return fmt::format("{}{}{}: {}", words, letteredName(*most), data->panes.size() > 1 ? " differs most" : "",
                           numbers);
    }

    ViewTable table(const ViewInput& input, const ParameterValues& options) const override {
        const std::vector<std::string> columns = {"pane",       "policy",     "heads",       "first", "second",
                                                  "difference", "kept_first", "kept_second", "notes"};
        std::vector<std::vector<std::string>> rows;
        if (whyNoPicture(input, options).empty()) {
            const auto data = dataAs<TwoCapturesData>(input);
            const char* kind = data->perQueryHead ? "query head" : "KV head";
            for (const Pane& pane : data->panes) {
                const std::string name = paneTitle(pane);
                if (!pane.refusal.empty()) {
                    rows.push_back(tableRow(pane.letter, name, pane.refusal, "", "", "", "", "", ""));
                    continue;
                }
                rows.push_back(tableRow(
                    pane.letter, name, fmt::format("layer {}, KV head {}", input.layer.value, input.kvHead.value),
                    pane.first, pane.second, differenceOf(pane), pane.keptFirst, pane.keptSecond, notesOf(pane)));
                for (const Head& head : pane.heads)
                    rows.push_back(tableRow(pane.letter, name,
                                            fmt::format("layer {}, {} {}", head.layer, kind, head.head), head.first,
                                            head.second, head.second - head.first, "", "", ""));
            }
        }
        return tableOf(columns, std::move(rows));
    }

    PointFacts inspect(const ViewInput& input, const ParameterValues&, const Scene& scene, Point at) const override {
        const auto data = dataAs<TwoCapturesData>(input);
        const PickId pick = pickAt(scene, at, 4);
        const auto pane = static_cast<std::size_t>(pick.index / kPickStride),
                   index = static_cast<std::size_t>(pick.index % kPickStride);
        if (pick.kind != PickId::Kind::Cell || pane >= data->panes.size() || index >= data->panes[pane].heads.size())
            return {};
        const Head& head = data->panes[pane].heads[index];
        PointFacts facts;
        facts.rows = {{"head", fmt::format("layer {}, {} {}", head.layer, data->perQueryHead ? "query head" : "KV head",
                                           head.head)},
                      {letteredName(data->panes[pane]), data->what},
                      {data->first.name, numberText(head.first)},
                      {data->second.name, numberText(head.second)},
                      {"difference", signedText(head.second - head.first)}};
        facts.layer = head.layer;
        (data->perQueryHead ? facts.queryHead : facts.kvHead) = head.head;
        return facts;
    }
};

} // namespace

const View& twoCapturesView() { return onlyOne<TwoCapturesView>(); }

} // namespace kvscope
