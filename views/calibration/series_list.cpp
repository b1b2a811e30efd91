// Names and numbers of the series: a list beside the plot where there is room, else the legend. A mark in either is the mark
// in the plot, and a curve that misses its points is called a poor fit wherever its name stands.
#include "views/calibration/series_list.h"

#include "views/calibration/calibration_curves.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

namespace kvscope {

namespace {

constexpr std::size_t kMostNamed = 6; // a legend of more names than these is a list nobody reads
constexpr const char* kPoor = "poor fit";

bool isNamed(const CalibrationViewData& data, const CalibrationSeries& series) {
    return series.own || data.series.size() <= kMostNamed;
}

bool isPoor(const CalibrationViewData& data, const CalibrationSeries& series, const ParameterValues& options) {
    return misfitOf(data, series, options).misfit.isPoor();
}

std::string residualText(const CalibrationViewData& data, const CalibrationSeries& series, const ParameterValues& options) {
    const double rms = misfitOf(data, series, options).misfit.rms;
    return std::isnan(rms) ? "" : formatFixed(rms, 3);
}

/// What a picture of this size has room for in its legend.
struct LegendRoom {
    bool brief, oneRow;
    explicit LegendRoom(const Viewport& viewport) : brief(viewport.height < 180), oneRow(viewport.height < 137) {}
};

std::string plainName(const CalibrationSeries& series) {
    return fmt::format("{} {}", series.letter, series.own ? series.policyName : series.context);
}

std::string legendName(const CalibrationViewData& data, const CalibrationSeries& series, const ParameterValues& options, SeriesNames names, LegendRoom room) {
    std::string name = room.brief || names == SeriesNames::LegendWithNeeded ? plainName(series) : nameOf(series);
    if (names == SeriesNames::LegendWithNeeded) // in few rows a name is cut at its end, and the number must not be
        name.insert(room.brief ? 1 : name.size(), " r* " + formatFixed(neededBy(series, options).retention, 3));
    return isPoor(data, series, options) ? name + ", " + kPoor : name;
}

/// The series by name; of many, those of the open context alone and what the grey ones are.
void appendSeries(std::vector<LegendEntry>& legend, const CalibrationViewData& data, const ParameterValues& options, SeriesNames names, LegendRoom room,
                  const Theme& theme) {
    bool others = false, measured = false, proxy = false;
    for (std::size_t i = 0; i < data.series.size(); ++i) {
        const CalibrationSeries& series = data.series[i];
        const SeriesLook look = lookOf(data, i, theme.id);
        if (isNamed(data, series))
            legend.push_back({legendName(data, series, options, names, room), Marker::Circle, kTransparent, {look.colour, series.own ? 2.0 : 1.2, look.dash}, 3, true});
        else
            others = true, (series.proxy ? proxy : measured) = true;
    }
    if (others)
        legend.push_back({fmt::format("other contexts, {}", !proxy ? "measured" : measured ? "measured and proxy" : "proxy"), Marker::Circle, kTransparent, {theme.text3, 1.2, {}}, 3, true});
}

/// The marks of each series with points, and what they are: "B proxy".
void appendMarks(std::vector<LegendEntry>& legend, const CalibrationViewData& data, bool brief, const Theme& theme) {
    LegendEntry* lastProxy = nullptr;
    legend.reserve(legend.size() + data.series.size());
    for (std::size_t i = 0; i < data.series.size(); ++i) {
        const CalibrationSeries& series = data.series[i];
        if (series.triples.empty() || !isNamed(data, series))
            continue;
        const PointCloudItem mark = marksOf(series, lookOf(data, i, theme.id));
        const std::string label = (series.own ? std::string(1, series.letter) : plainName(series)) + " " + kindOf(series);
        legend.push_back({label, mark.marker, mark.fill, mark.stroke, mark.radius});
        lastProxy = series.proxy ? &legend.back() : lastProxy;
    }
    if (lastProxy && !brief)
        lastProxy->label += ", no model's losses";
}

} // namespace

std::string nameOf(const CalibrationSeries& series) {
    return plainName(series) + (series.proxy ? " (proxy)" : "");
}

std::string fitWords(const CalibrationViewData& data, const CalibrationSeries& series, const ParameterValues& options) {
    const std::string residual = residualText(data, series, options);
    const std::size_t contexts = misfitOf(data, series, options).contexts;
    if (residual.empty())
        return "";
    return fmt::format("residual {}{}{}", residual, contexts > 0 ? fmt::format(" over {} contexts", contexts) : "",
                       isPoor(data, series, options) ? std::string(": ") + kPoor : "");
}

std::vector<LegendEntry> calibrationLegend(const CalibrationViewData& data, const ParameterValues& options, SeriesNames names,
                                           const Viewport& viewport) {
    const Theme& theme = themeOf(viewport.theme);
    const LegendRoom room(viewport);
    std::vector<LegendEntry> legend;
    if (names != SeriesNames::List)
        appendSeries(legend, data, options, names, room, theme);
    if (names != SeriesNames::LegendWithNeeded || !room.oneRow)
        appendMarks(legend, data, room.brief, theme);
    if (!room.brief)
        legend.push_back({"k = 0: incompressible", Marker::Circle, kTransparent, {theme.text3, 1, {1, 3}}, 3, true});
    for (const CalibrationFailure& failure : data.failures)
        legend.push_back({fmt::format("{}: no curve", failure.letter), Marker::Cross, theme.text3, {theme.text3, 1, {}}, 3});
    return legend;
}

namespace {

const TextStyle kName{FontFace::Interface, 11}, kNumber{FontFace::Monospace, 11}, kHead{FontFace::Interface, 11, FontWeight::SemiBold};
constexpr double kRowPitch = 17, kLine = 22, kMark = 42, kGap = 12;
constexpr const char* kHeads[] = {"r*", "k", "residual", ""};

} // namespace

SeriesList::SeriesList(const CalibrationViewData& data, const ParameterValues& options, const TextService& text) : m_data(data) {
    const auto widen = [&](double& width, const std::string& words, const TextStyle& style) {
        width = std::max(width, words.empty() ? 0 : text.measure(words, style).width);
    };
    for (int column = 0; column < kColumns; ++column)
        widen(m_widths[column], kHeads[column], kHead);
    for (std::size_t i = 0; i < data.series.size(); ++i) {
        const CalibrationSeries& series = data.series[i];
        Row row{i, nameOf(series), {}};
        row.cells[Needed] = formatFixed(neededBy(series, options).retention, 3);
        row.cells[Curvature] = formatFixed(curvatureOf(series, options), 1);
        row.cells[Residual] = residualText(data, series, options);
        row.cells[Verdict] = isPoor(data, series, options) ? kPoor : "";
        widen(m_names, row.name, kName);
        for (int column = 0; column < kColumns; ++column)
            widen(m_widths[column], row.cells[column], column == Verdict ? kName : kNumber);
        m_rows.push_back(std::move(row));
    }
    m_names = std::min(m_names, 160.0);
    m_width = kMark + m_names;
    for (const double width : m_widths)
        m_width += width > 0 ? kGap + width : 0;
}

double SeriesList::height() const {
    return kRowPitch * static_cast<double>(m_rows.size() + 1);
}

void SeriesList::draw(SceneBuilder& builder, Point topLeft, const Theme& theme) const {
    const auto eachColumn = [&](const auto& tell) {
        double right = topLeft.x + kMark + m_names;
        for (int column = 0; column < kColumns; ++column)
            if (m_widths[column] > 0)
                tell(column, right += kGap + m_widths[column]);
    };
    double y = topLeft.y + kRowPitch / 2;
    eachColumn([&](int column, double right) {
        if (*kHeads[column])
            builder.text({right, y}, kHeads[column], kHead, theme.text2, HorizontalAlign::Right, VerticalAlign::Middle);
    });
    for (const Row& row : m_rows) {
        y += kRowPitch;
        const CalibrationSeries& series = m_data.series[row.series];
        const SeriesLook look = lookOf(m_data, row.series, theme.id);
        builder.line({topLeft.x, y}, {topLeft.x + kLine, y}, {look.colour, series.own ? 2.0 : 1.2, look.dash});
        if (!series.triples.empty()) {
            PointCloudItem mark = marksOf(series, look);
            mark.points = std::make_shared<std::vector<Point>>(1, Point{topLeft.x + kLine + 9, y});
            builder.points(std::move(mark));
        }
        builder.text({topLeft.x + kMark, y}, builder.elide(row.name, kName, m_names), kName, theme.text1, HorizontalAlign::Left, VerticalAlign::Middle);
        eachColumn([&](int column, double right) {
            if (!row.cells[column].empty())
                builder.text({right, y}, row.cells[column], column == Verdict ? kName : kNumber, column == Verdict ? theme.warning : theme.text1,
                             HorizontalAlign::Right, VerticalAlign::Middle);
        });
    }
}

} // namespace kvscope
