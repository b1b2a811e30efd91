// How far this context can be compressed before the quality falls below tau: measured points, fitted curves, and the
// retention at which each policy meets tau. Proxies are hollow and labelled.
#include "core/calibration/calibration.h"
#include "core/parameters/parameter_rows.h"
#include "views/calibration/calibration_picture.h"
#include "views/common/chart.h"
#include "views/common/view_facts.h"
#include "views/common/view_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

namespace kvscope {

namespace {

ParameterTable makeOptions() {
    constexpr const char* source = "Compactor 3.5, Figs. 6 and 7";
    return {
        choiceRow("source", "Points",
                  {{"best", "Measured, else proxy",
                    "the capture's rows where it has some of the policy and variant; of a live context the model"},
                   {"measured", "Measured",
                    "losses of the model: the capture's rows (/calibration), or what a live context's model is asked"},
                   {"proxy", "Proxy", "1 − relative output error on a grid of retentions; no model's losses"},
                   {"table", "Table", "a CSV of triples, several contexts"},
                   {"given", "Given k", "a curvature by hand"}},
                  Stage::Features, "Where the points come from.", source),
        realRow("tau", "Quality to keep", "τ", {0.5, 1, 0.95}, Stage::Select,
                "The quality to keep: NLL(full) / NLL(compressed).", source),
        realRow("weight", "Weight of errors above", "w", {1, 20, kCalibrationWeight}, Stage::Features,
                "How much more a curve above a point weighs than one below it.", source),
        realRow("k", "Curvature", "k", {-20, 5, -5}, Stage::Select, "The curvature of points = given.", source),
        textRow("table", "Table of triples", "", Stage::Features,
                "FILE.csv for points = table: retention, quality or nll_full and nll_compressed, "
                "nll_context, context, policy, variant.",
                source, nullptr, kTableFileUnit)};
}

/// The longest title that is no longer than the axis; empty where none fits.
std::string qualityTitle(const CalibrationViewData& data, double height, const TextService& text) {
    const bool all = std::ranges::all_of(data.series, &CalibrationSeries::proxy);
    const std::vector<std::string> titles =
        all ? std::vector<std::string>{"Proxy quality: 1 − relative output error", "Proxy quality: 1 − error",
                                       "Proxy quality"}
            : std::vector<std::string>{data.anyProxy() ? "Quality = NLL(full) / NLL(compressed); hollow: proxy"
                                                       : "Quality = NLL(full) / NLL(compressed)",
                                       "Quality = NLL(full) / NLL(compressed)", "Quality"};
    for (const std::string& title : titles)
        if (text.measure(title, {FontFace::Interface, 11}).width <= height) return title;
    return "";
}

/// The axes extend a little beyond 0 and 1, so that marks there fit. `plot`: the approximate plot box.
std::pair<AxisSpec, AxisSpec> axesFor(const CalibrationViewData& data, const Box& plot) {
    constexpr double kRoom = 6;
    double top = 1;
    for (const CalibrationSeries& series : data.series)
        for (const CalibrationTriple& triple : series.triples) top = std::max(top, std::min(triple.quality, 1.5));
    const double x = kRoom / std::max(1.0, plot.width - 2 * kRoom),
                 y = kRoom * top / std::max(1.0, plot.height - 2 * kRoom);
    return {{-x, 1 + x, AxisScale::Linear, "Retention r (fraction kept)"},
            {-y, std::max(1.05, top + y), AxisScale::Linear, ""}};
}

Chart chartFor(const CalibrationViewData& data, const ParameterValues& options, SeriesNames names,
               const Viewport& viewport, double listWidth = 0) {
    const std::vector<LegendEntry> legend = calibrationLegend(data, options, names, viewport);
    const Box plot = Chart(viewport, legend, {}, {}, listWidth).frame.plot;
    auto [x, y] = axesFor(data, plot);
    y.title = qualityTitle(data, plot.height, *viewport.text);
    return Chart(viewport, legend, std::move(x), std::move(y), listWidth);
}

/// Indices of the open context's series, the least retention last, so that its mark is drawn on top.
std::vector<std::size_t> ownSeries(const CalibrationViewData& data, const ParameterValues& options) {
    std::vector<std::size_t> own;
    for (std::size_t i = 0; i < data.series.size(); ++i)
        if (data.series[i].own) own.push_back(i);
    std::ranges::stable_sort(own, [&](std::size_t a, std::size_t b) {
        return leadingRetention(data, data.series[a], options) > leadingRetention(data, data.series[b], options);
    });
    return own;
}

/// The chart with names and numbers in a list beside a wide plot, else in the legend.
struct Arrangement {
    Chart chart;
    bool listed = false;
};

Arrangement arrange(const CalibrationViewData& data, const ParameterValues& options, const SeriesList& list,
                    const Viewport& viewport) {
    constexpr double kLeastPlot = 0.65; // of the width: the curves are the picture
    if (list.width() < (1 - kLeastPlot) * viewport.width) {
        Chart chart = chartFor(data, options, SeriesNames::List, viewport, list.width() + 4);
        if (list.height() <= chart.frame.plot.height && chart.frame.plot.width >= kLeastPlot * viewport.width)
            return {std::move(chart), true};
    }
    return {chartFor(data, options, SeriesNames::Legend, viewport), false};
}

std::string neededText(const CalibrationViewData& data, const CalibrationSeries& series,
                       const ParameterValues& options) {
    const NeededRetention needed = neededBy(series, options);
    const std::string name = letteredName(series) + contextBehind(series) + " ", fit = fitWords(data, series, options);
    std::string curve = formatPercent(needed.retention);
    if (!std::isnan(needed.band.low))
        curve +=
            fmt::format(" ({} to {})", formatFixed(100 * needed.band.low, 1), formatFixed(100 * needed.band.high, 1));
    const std::string residual = fit.empty() ? "" : ", " + fit;
    if (series.triples.empty()) return name + curve + residual;
    curve += " by its curve" + residual;
    if (std::isnan(needed.ofPoints)) return name + curve + "; its points do not keep it";
    const std::string points = formatPercent(needed.ofPoints) + " by its points";
    return isPoor(data, series, options) ? name + points + ", " + curve : name + curve + ", " + points;
}

/// ". A: the note; another note. B: a note"; each pane once.
std::string notesText(const CalibrationViewData& data) {
    std::string text;
    std::set<char> told; // the series of a pane share their notes
    for (const CalibrationSeries& series : data.series)
        if (!series.notes.empty() && told.insert(series.letter).second)
            text += fmt::format(". {}: {}", series.letter, fmt::join(series.notes, "; "));
    return text;
}

/// Provenance. Points are of the whole model; the cut of rows that were measured with another cut is named.
std::string sourceWords(const ViewInput& input, const CalibrationViewData& data) {
    std::string text = provenance(input, readyPanes(input), true);
    for (const CalibrationSeries& series : data.series)
        if (series.own && series.measuredCut && *series.measuredCut != input.cut.token)
            text += fmt::format(" · {} measured with its own cut: {}", series.letter, *series.measuredCut);
    return text;
}

std::vector<std::string> rowOf(const CalibrationViewData& data, const CalibrationSeries& series,
                               const ParameterValues& options, const CalibrationTriple* triple) {
    const auto number = [](double value) {
        return std::isfinite(value) ? fmt::format("{:.9g}", value) : std::string();
    };
    const double k = curvatureOf(series, options);
    const NeededRetention needed = neededBy(series, options);
    const CalibrationMisfit misfit = misfitOf(data, series, options).misfit;
    return tableRow(series.letter, series.policyId, series.variant, series.context, kindOf(series),
                    triple ? number(triple->retention) : "", triple ? number(triple->quality) : "",
                    triple ? number(calibrationCurve(k, triple->retention)) : "", number(k),
                    number(options.real("tau")), number(needed.retention), number(needed.band.low),
                    number(needed.band.high), number(needed.ofPoints), series.origin,
                    fmt::format("{}", fmt::join(series.notes, "; ")), triple ? number(triple->contextNll) : "",
                    series.proxy ? "true" : "false", number(misfit.rms), number(misfit.explained()));
}

class CalibrationView final : public View {
public:
    CalibrationView()
        : View({.id = "calibration",
                .name = "Calibration",
                .summary = "Quality against retention, and the retention that each policy needs",
                .paper = "Compactor Figs. 6, 7",
                .group = ViewGroup::Cost,
                .needs = {{"weight", {{"source", choicesBut(makeOptions(), "source", {"given"})}}},
                          {"k", {{"source", {"given"}}}},
                          {"table", {{"source", {"table"}}}}},
                .data = "calibration",
                .waiting = "Measuring what compression costs…",
                .teaching = TeachingRole::Steps},
               makeOptions()) {}

    std::string whyNoPicture(const ViewInput& input, const ParameterValues& options) const override {
        if (const std::string why = View::whyNoPicture(input, options); !why.empty()) return why;
        const auto data = dataAs<CalibrationViewData>(input);
        if (!data->series.empty()) return "";
        return data->failures.empty() ? card().waiting : data->failures.front().sentence;
    }

    Scene draw(const ViewInput& input, const ParameterValues& options, const Viewport& viewport) const override {
        const auto data = dataAs<CalibrationViewData>(input);
        const Theme& theme = themeOf(viewport.theme);
        const std::vector<std::size_t> own = ownSeries(*data, options);
        const SeriesList list(*data, options, *viewport.text);
        Arrangement arranged = arrange(*data, options, list, viewport);
        Chart& chart = arranged.chart;
        SceneBuilder builder = chart.builder(viewport);
        drawGrid(builder, chart.frame, theme);
        builder.pushClip(chart.frame.plot);
        builder.line(chart.frame.toPixels(0, 0), chart.frame.toPixels(1, 1), {theme.text3, 1, {1, 3}});
        for (std::size_t i = 0; i < data->series.size(); ++i) {
            const SeriesLook look = lookOf(*data, i, viewport.theme);
            if (data->series[i].own) drawBand(builder, chart.frame, data->series[i], look.colour);
            drawFittedCurve(builder, chart.frame, data->series[i], curvatureOf(data->series[i], options), look);
        }
        drawAcross(builder, chart.frame, options.real("tau"), {theme.ink, 1, {4, 3}});
        for (std::size_t i = 0; i < data->series.size(); ++i)
            drawTriples(builder, chart.frame, *data, i, lookOf(*data, i, viewport.theme));
        drawNeeded(builder, chart.frame, *data, own, options, theme);
        nameTau(builder, chart.frame, *data, options.real("tau"), theme);
        builder.popClip();
        if (arranged.listed) list.draw(builder, {viewport.width - 10 - list.width(), chart.frame.plot.y}, theme);
        return finishChart(chart, viewport, false, sourceWords(input, *data));
    }

    std::string conclude(const ViewInput& input, const ParameterValues& options) const override {
        const auto data = dataAs<CalibrationViewData>(input);
        std::vector<std::string> measured, proxies;
        for (const std::size_t i : ownSeries(*data, options)) {
            std::vector<std::string>& parts = data->series[i].proxy ? proxies : measured;
            parts.insert(parts.begin(), neededText(*data, data->series[i], options));
        }
        if (measured.empty() && proxies.empty())
            for (const CalibrationSeries& series : data->series)
                (series.proxy ? proxies : measured)
                    .push_back(series.context + ": " + neededText(*data, series, options));
        std::string text = "To keep a quality of " + formatShort(options.real("tau"));
        if (!measured.empty())
            text += fmt::format("{}: {}",
                                data->anyLive()   ? ", measured live"
                                : proxies.empty() ? ""
                                                  : ", measured",
                                fmt::join(measured, "; "));
        if (!proxies.empty())
            text += fmt::format("{} by proxy: {}", measured.empty() ? "" : ";", fmt::join(proxies, "; "));
        return text + notesText(*data);
    }

    /// As CSV it is a table of triples, see readTriplesCsv.
    ViewTable table(const ViewInput& input, const ParameterValues& options) const override {
        std::vector<std::vector<std::string>> rows;
        if (const auto data = dataAs<CalibrationViewData>(input))
            for (const CalibrationSeries& series : data->series) {
                for (const CalibrationTriple& triple : series.triples)
                    rows.push_back(rowOf(*data, series, options, &triple));
                if (series.triples.empty()) rows.push_back(rowOf(*data, series, options, nullptr));
            }
        return tableOf({"pane",        "policy",        "variant",          "context",
                        "kind",        "retention",     "quality",          "fitted",
                        "k",           "tau",           "retention_needed", "needed_low",
                        "needed_high", "points_needed", "origin",           "notes",
                        "nll_context", "proxy",         "residual_rms",     "r_squared"},
                       std::move(rows));
    }

    PointFacts inspect(const ViewInput& input, const ParameterValues& options, const Scene& scene,
                       Point at) const override {
        const auto data = dataAs<CalibrationViewData>(input);
        const PickId pick = pickAt(scene, at, 3);
        const bool isPoint = pick.kind == PickId::Kind::Cell;
        if (!isPoint && pick.kind != PickId::Kind::Node) return {};
        const auto index = static_cast<std::size_t>(isPoint ? pick.index / kPointsPerSeries : pick.index);
        const CalibrationSeries& series = data->series.at(index);
        PointFacts facts;
        facts.rows = {{"policy", letteredName(series) + ", " + series.variant},
                      {"context", series.context},
                      {"points", kindOf(series)}};
        if (isPoint) {
            const CalibrationTriple& triple = series.triples[pick.index % kPointsPerSeries];
            facts.rows.insert(facts.rows.end(),
                              {{"retention", formatFixed(triple.retention, 3)},
                               {"quality", formatFixed(triple.quality, 3)},
                               {"curve", formatFixed(calibrationCurve(series.k, triple.retention), 3)}});
            if (series.own && triple.retention > 0)
                facts.settingChange = SettingChange{series.pane, {}, Budget{Budget::Unit::Fraction, triple.retention}};
            if (facts.settingChange) facts.rows.emplace_back("a click sets", "@" + facts.settingChange->budget->text());
            return facts;
        }
        const double k = curvatureOf(series, options), needed = neededBy(series, options).retention;
        const Budget budget = budgetOf(series, *data, options);
        facts.rows.insert(facts.rows.end(),
                          {{"k", formatShort(k) + (series.atEdge ? ", the end of the searched range" : "")},
                           {"r*", formatFixed(needed, 4)},
                           {"slope there", formatShort(calibrationSlope(k, needed))},
                           {"a click sets", fmt::format("pane {} to @{}", series.letter, budget.text())}});
        for (const std::string& note : series.notes) facts.rows.emplace_back("note", note);
        if (const std::string fit = fitWords(*data, series, options); !fit.empty())
            facts.rows.emplace_back(
                "fit",
                fmt::format("{}, R² {}", fit, formatFixed(misfitOf(*data, series, options).misfit.explained(), 2)));
        facts.settingChange = SettingChange{series.pane, {}, budget};
        return facts;
    }
};

} // namespace

const View& calibrationView() { return onlyOne<CalibrationView>(); }

} // namespace kvscope
