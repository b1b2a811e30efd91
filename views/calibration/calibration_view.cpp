// How far this context can be compressed before quality falls below tau: what was measured, the curve through it, and
// the retention at which each policy meets tau. What is a proxy is hollow and is called one.
#include "views/calibration/calibration_view.h"

#include "core/run/calibration.h"
#include "views/calibration/calibration_curves.h"
#include "views/chart.h"
#include "views/explanations.h"
#include "views/file_option.h"
#include "views/option_needs.h"
#include "views/view_facts.h"
#include "views/view_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace kvscope {

namespace {

std::shared_ptr<const ParameterTable> makeOptions() {
    constexpr const char* source = "Compactor 3.5, Figs. 6 and 7";
    ParameterTable rows = {
        choiceOption("source", "Points", "Where the points come from.", source,
                     {{"best", "Measured, else proxy", "the capture's rows where it has some of the policy and variant"},
                      {"measured", "Measured", "the capture's rows (/calibration), losses of the model"},
                      {"proxy", "Proxy", "1 − relative output error at a ladder of retentions; no model's losses"},
                      {"table", "Table", "a CSV of triples, several contexts"},
                      {"given", "Given k", "a curvature by hand"}},
                     Stage::Features),
        realOption("tau", "τ", "The quality to keep: NLL(full) / NLL(compressed).", source, 0.5, 1, 0.95, Stage::Select),
        realOption("weight", "w", "How much more a curve above a point weighs than one below it.", source, 1, 20,
                   kCalibrationWeight, Stage::Features),
        realOption("k", "k", "The curvature of points = given.", source, -20, 5, -5, Stage::Select)};
    rows.push_back(fileOption("table", "Table of triples",
                              "FILE.csv for points = table: retention, quality or nll_full and nll_compressed, nll_context, context, policy, variant.",
                              source, kTableFileUnit));
    return std::make_shared<const ParameterTable>(std::move(rows));
}

class CalibrationView final : public View, public OptionNeedsView {
public:
    CalibrationView()
        : View({.id = "calibration",
                .name = "Calibration",
                .summary = "Quality against retention, and the retention that each policy needs",
                .paper = "Compactor Figs. 6, 7",
                .help = std::string(viewExplanation("calibration_view")),
                .options = makeOptions(),
                .data = "calibration"}) {}

    Scene buildScene(const ViewInput& input, const ParameterValues& options, const Viewport& viewport) const override;
    std::string finding(const ViewInput& input, const ParameterValues& options) const override;
    ViewTable table(const ViewInput& input, const ParameterValues& options) const override;
    std::vector<OptionNeed> optionNeeds() const override;
    PointFacts factsAt(const ViewInput& input, const ParameterValues& options, const Scene& scene, Point at) const override;
};

std::string whyNoPicture(const ViewInput& input) {
    constexpr const char* measuring = "Measuring what compression costs…";
    if (const std::string why = whyNoData<CalibrationViewData>(input, measuring); !why.empty())
        return why;
    const auto data = dataAs<CalibrationViewData>(input);
    if (!data->series.empty())
        return "";
    return data->failures.empty() ? measuring : data->failures.front().sentence;
}

std::string nameOf(const CalibrationSeries& series) {
    return fmt::format("{} {}", series.letter, series.own ? series.policyName : series.context);
}

bool anyProxy(const CalibrationViewData& data) {
    return std::any_of(data.series.begin(), data.series.end(), [](const CalibrationSeries& s) { return s.proxy; });
}

constexpr std::size_t kMostNamed = 6; // a legend of more names than these is a list nobody reads

/// The series by name; of many, those of the open context alone and what the grey ones are.
void appendSeries(std::vector<LegendEntry>& legend, const CalibrationViewData& data, const Theme& theme) {
    const bool few = data.series.size() <= kMostNamed;
    bool others = false;
    for (std::size_t i = 0; i < data.series.size(); ++i) {
        const CalibrationSeries& series = data.series[i];
        const SeriesLook look = lookOf(data, i, theme.id);
        if (series.own || few)
            legend.push_back({nameOf(series), Marker::Circle, kTransparent, {look.colour, series.own ? 2.0 : 1.2, look.dash}, 3, true});
        else
            others = true;
    }
    if (others)
        legend.push_back({"other contexts", Marker::Circle, kTransparent, {theme.text3, 1.2, {}}, 3, true});
}

/// `named`: with the series, where no list in the plot names them.
std::vector<LegendEntry> legendOf(const CalibrationViewData& data, bool named, const Theme& theme) {
    std::vector<LegendEntry> legend;
    if (named)
        appendSeries(legend, data, theme);
    const auto any = [&](const char* kind) {
        return std::any_of(data.series.begin(), data.series.end(), [&](const CalibrationSeries& s) { return kindOf(s) == kind; });
    };
    if (any("measured"))
        legend.push_back({"measured", Marker::Circle, theme.text2, {}, 3});
    if (any("proxy"))
        legend.push_back({"proxy, no model's losses", Marker::Circle, kTransparent, {theme.text2, 1.2, {}}, 3});
    legend.push_back({"k = 0: incompressible", Marker::Circle, kTransparent, {theme.text3, 1, {1, 3}}, 3, true});
    for (const CalibrationFailure& failure : data.failures)
        legend.push_back({fmt::format("{}: no curve", failure.letter), Marker::Cross, theme.text3, {theme.text3, 1, {}}, 3});
    return legend;
}

Chart chartFor(const CalibrationViewData& data, bool named, const Viewport& viewport) {
    double top = 1.05;
    for (const CalibrationSeries& series : data.series)
        for (const CalibrationTriple& triple : series.triples)
            top = std::max(top, std::min(triple.quality * 1.03, 1.5));
    const bool all = std::all_of(data.series.begin(), data.series.end(), [](const CalibrationSeries& s) { return s.proxy; });
    const bool isLow = viewport.height < 300; // no room for a long title beside the axis
    const std::string title = all && isLow      ? "Proxy quality: 1 − error"
                              : all             ? "Proxy quality: 1 − relative output error"
                              : anyProxy(data) ? "Quality NLL(full) / NLL(compressed); hollow: proxy"
                                               : "Quality NLL(full) / NLL(compressed)";
    return Chart(viewport, legendOf(data, named, themeOf(viewport.theme)), {0, 1, AxisScale::Linear, "Retention r (fraction kept)"}, {0, top, AxisScale::Linear, title});
}

void drawDiagonal(SceneBuilder& builder, const PlotFrame& frame, const Theme& theme) {
    builder.line(frame.toPixels(0, 0), frame.toPixels(1, 1), {theme.text3, 1, {1, 3}});
}

void drawTau(SceneBuilder& builder, const PlotFrame& frame, double tau, const Theme& theme) {
    const double y = frame.toPixels(0, tau).y;
    builder.line({frame.plot.x, y}, {frame.plot.right(), y}, {theme.ink, 1, {4, 3}});
}

/// On a plate, because curves and the lines of r* run where it stands.
void nameTau(SceneBuilder& builder, const PlotFrame& frame, double tau, const Theme& theme) {
    const TextStyle style{FontFace::Interface, 11, FontWeight::SemiBold};
    const std::string text = "τ = " + formatShort(tau);
    const Box plate{frame.plot.x + 3, frame.toPixels(0, tau).y + 2, builder.width(text, style) + 6, 15};
    builder.rectangle(plate, withAlpha(theme.canvas, 0.85));
    builder.text({plate.x + 3, plate.y + 1}, text, style, theme.text1, HorizontalAlign::Left, VerticalAlign::Top);
}

/// Indices of the open context's series, the least retention last, so that its box stands highest.
std::vector<std::size_t> ownSeries(const CalibrationViewData& data, const ParameterValues& options) {
    std::vector<std::size_t> own;
    for (std::size_t i = 0; i < data.series.size(); ++i)
        if (data.series[i].own)
            own.push_back(i);
    std::stable_sort(own.begin(), own.end(), [&](std::size_t a, std::size_t b) {
        return neededBy(data.series[a], options).retention > neededBy(data.series[b], options).retention;
    });
    return own;
}

constexpr double kListRow = 17;

double listHeight(const CalibrationViewData& data) {
    return kListRow * static_cast<double>(data.series.size()) + 8;
}

/// Whether the list of series has its place above so many boxes.
bool hasRoomForList(const PlotFrame& frame, const CalibrationViewData& data, std::size_t boxes) {
    return frame.plot.width >= 380 && frame.plot.height - 23 * static_cast<double>(boxes) >= listHeight(data) + 90;
}

/// Name and k of every series in the lower right corner, which concave curves leave free.
void drawSeriesList(SceneBuilder& builder, const PlotFrame& frame, const CalibrationViewData& data, const ParameterValues& options,
                    const Theme& theme, std::size_t boxes) {
    constexpr double kWidth = 250;
    const double bottom = frame.plot.bottom() - 12 - 23 * static_cast<double>(boxes), height = listHeight(data);
    const Box box{frame.plot.right() - kWidth - 6, bottom - height, kWidth, height};
    builder.rectangle(box, withAlpha(theme.canvas, 0.93));
    const TextStyle plain{FontFace::Interface, 11}, number{FontFace::Monospace, 11};
    double y = box.y + 4 + kListRow / 2;
    for (std::size_t i = 0; i < data.series.size(); ++i, y += kListRow) {
        const CalibrationSeries& series = data.series[i];
        const SeriesLook look = lookOf(data, i, theme.id);
        builder.line({box.x + 4, y}, {box.x + 26, y}, {look.colour, series.own ? 2.0 : 1.2, look.dash});
        const std::string k = "k " + formatFixed(curvatureOf(series, options), 1);
        const double kWide = builder.width(k, number);
        builder.text({box.right() - 4, y}, k, number, theme.text1, HorizontalAlign::Right, VerticalAlign::Middle);
        const std::string name = nameOf(series) + (series.proxy ? " (proxy)" : "");
        builder.text({box.x + 32, y}, builder.elide(name, plain, box.width - 46 - kWide), plain, theme.text1, HorizontalAlign::Left,
                     VerticalAlign::Middle);
    }
}

std::vector<OptionNeed> CalibrationView::optionNeeds() const {
    return {{"weight", {{"source", choicesBut(*card().options, "source", {"given"})}}},
            {"k", {{"source", {"given"}}}},
            {"table", {{"source", {"table"}}}}};
}

Scene CalibrationView::buildScene(const ViewInput& input, const ParameterValues& options, const Viewport& viewport) const {
    if (const std::string why = whyNoPicture(input); !why.empty())
        return emptyScene(why, viewport);
    const auto data = dataAs<CalibrationViewData>(input);
    const Theme& theme = themeOf(viewport.theme);
    const std::vector<std::size_t> own = ownSeries(*data, options);
    Chart chart = chartFor(*data, false, viewport);
    const bool listed = hasRoomForList(chart.frame, *data, own.size());
    if (!listed)
        chart = chartFor(*data, true, viewport);
    SceneBuilder builder = chart.builder(viewport);
    drawGrid(builder, chart.frame, theme);
    builder.pushClip(chart.frame.plot);
    drawDiagonal(builder, chart.frame, theme);
    for (std::size_t i = 0; i < data->series.size(); ++i) {
        const SeriesLook look = lookOf(*data, i, viewport.theme);
        if (data->series[i].own)
            drawBand(builder, chart.frame, data->series[i], look.colour);
        drawFittedCurve(builder, chart.frame, data->series[i], curvatureOf(data->series[i], options), look);
    }
    drawTau(builder, chart.frame, options.real("tau"), theme);
    for (std::size_t i = 0; i < data->series.size(); ++i)
        drawTriples(builder, chart.frame, *data, i, lookOf(*data, i, viewport.theme));
    drawNeeded(builder, chart.frame, *data, own, options, theme);
    nameTau(builder, chart.frame, options.real("tau"), theme);
    if (listed)
        drawSeriesList(builder, chart.frame, *data, options, theme, own.size());
    builder.popClip();
    finishChart(chart, input, viewport, false);
    return std::move(chart.scene);
}

std::string percent(double share) {
    return formatFixed(100 * share, 1) + " %";
}

std::string neededText(const CalibrationSeries& series, const ParameterValues& options) {
    const NeededRetention needed = neededBy(series, options);
    std::string text = fmt::format("{} {} {}", series.letter, series.policyName, percent(needed.retention));
    if (!std::isnan(needed.band.low))
        text += fmt::format(" ({} to {})", formatFixed(100 * needed.band.low, 1), formatFixed(100 * needed.band.high, 1));
    return series.proxy ? text + " by proxy" : text;
}

std::string CalibrationView::finding(const ViewInput& input, const ParameterValues& options) const {
    if (const std::string why = whyNoPicture(input); !why.empty())
        return why;
    const auto data = dataAs<CalibrationViewData>(input);
    std::vector<std::string> parts;
    for (const std::size_t i : ownSeries(*data, options))
        parts.insert(parts.begin(), neededText(data->series[i], options));
    if (parts.empty())
        for (const CalibrationSeries& series : data->series)
            parts.push_back(series.context + ": " + neededText(series, options));
    return fmt::format("To keep a quality of {}: {}", formatShort(options.real("tau")), fmt::join(parts, "; "));
}

std::vector<std::string> rowOf(const CalibrationSeries& series, const ParameterValues& options, const CalibrationTriple* triple) {
    const auto number = [](double value) { return std::isfinite(value) ? fmt::format("{:.9g}", value) : std::string(); };
    const double k = curvatureOf(series, options);
    const NeededRetention needed = neededBy(series, options);
    return {std::string(1, series.letter), series.policyName, series.variant, series.context, kindOf(series),
            triple ? number(triple->retention) : "", triple ? number(triple->quality) : "",
            triple ? number(calibrationCurve(k, triple->retention)) : "", number(k), number(options.real("tau")),
            number(needed.retention), number(needed.band.low), number(needed.band.high), series.origin};
}

ViewTable CalibrationView::table(const ViewInput& input, const ParameterValues& options) const {
    ViewTable table;
    table.columns = {"pane", "policy", "variant", "context", "kind", "retention", "quality", "fitted", "k", "tau",
                     "retention_needed", "needed_low", "needed_high", "origin"};
    auto rows = std::make_shared<std::vector<std::vector<std::string>>>();
    if (const auto data = dataAs<CalibrationViewData>(input))
        for (const CalibrationSeries& series : data->series) {
            for (const CalibrationTriple& triple : series.triples)
                rows->push_back(rowOf(series, options, &triple));
            if (series.triples.empty())
                rows->push_back(rowOf(series, options, nullptr));
        }
    table.rowCount = std::ssize(*rows);
    table.cell = [rows](std::int64_t row, int column) { return (*rows)[static_cast<std::size_t>(row)][static_cast<std::size_t>(column)]; };
    return table;
}

PointFacts CalibrationView::factsAt(const ViewInput& input, const ParameterValues& options, const Scene& scene, Point at) const {
    const auto data = dataAs<CalibrationViewData>(input);
    const PickId pick = pickAt(scene, at, 3);
    const bool isPoint = pick.kind == PickId::Kind::Cell;
    if (!data || (!isPoint && pick.kind != PickId::Kind::Handle))
        return {};
    const auto index = static_cast<std::size_t>(isPoint ? pick.index / kPointsPerSeries : pick.index);
    const CalibrationSeries& series = data->series.at(index);
    PointFacts facts;
    facts.rows = {{"policy", fmt::format("{} {}, {}", series.letter, series.policyName, series.variant)},
                  {"context", series.context},
                  {"points", kindOf(series)}};
    if (isPoint) {
        const CalibrationTriple& triple = series.triples[static_cast<std::size_t>(pick.index % kPointsPerSeries)];
        facts.rows.insert(facts.rows.end(), {{"retention", formatFixed(triple.retention, 3)},
                                             {"quality", formatFixed(triple.quality, 3)},
                                             {"curve", formatFixed(calibrationCurve(series.k, triple.retention), 3)}});
        return facts;
    }
    const double k = curvatureOf(series, options), needed = neededBy(series, options).retention;
    const Budget budget = budgetOf(series, *data, options);
    facts.rows.insert(facts.rows.end(), {{"k", formatShort(k)},
                                         {"r*", formatFixed(needed, 4)},
                                         {"slope there", formatShort(calibrationSlope(k, needed))},
                                         {"a click sets", "@" + budget.text()}});
    facts.adoption = Adoption{series.pane, {}, budget};
    return facts;
}

} // namespace

const View& calibrationView() {
    static const CalibrationView view;
    return view;
}

} // namespace kvscope
