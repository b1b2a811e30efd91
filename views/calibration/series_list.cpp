// Names and numbers of the series: a list beside the plot if there is room, else the legend. Both use the plot's marks
// and mark poor fits.

#include "views/calibration/calibration_picture.h"
#include "views/common/chart.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <tuple>
#include <utility>

namespace kvscope {

namespace {

constexpr std::size_t kMostNamed = 6; // longer legends become a list
constexpr const char* kPoor = "poor fit";

bool isNamed(const CalibrationViewData& data, const CalibrationSeries& series) {
    return series.own || data.series.size() <= kMostNamed;
}

std::string residualText(const CalibrationViewData& data, const CalibrationSeries& series,
                         const ParameterValues& options) {
    const double rms = misfitOf(data, series, options).misfit.rms;
    return std::isnan(rms) ? "" : formatFixed(rms, 3);
}

/// Detail of the legend, from the most to the least. What is left out is in the list, the finding or the facts.
enum class Wording { Full, Plain, PoorOnce, Names, Letters };

/// With a dagger where there are notes.
std::string plainName(const CalibrationSeries& series) {
    return fmt::format("{} {}{}{}", series.letter, series.own ? series.policyName : series.context,
                       contextBehind(series), series.notes.empty() ? "" : "†");
}

std::string legendName(const CalibrationViewData& data, const CalibrationSeries& series, const ParameterValues& options,
                       Wording wording) {
    std::string name = nameOf(series);
    if (wording == Wording::Names) return name;
    if (wording == Wording::Letters && series.own) // the shortest: "B proxy"
        name = std::string(1, series.letter) + (series.proxy ? " proxy" : "");
    const double points = neededBy(series, options).ofPoints;
    if (wording <= Wording::Plain && isPoor(data, series, options) && !std::isnan(points))
        name += " points " + formatFixed(points, 2) + ",";
    const bool isShort = wording == Wording::Letters; // the number follows the letter, so that a cut label shows it
    name.insert(isShort ? 1 : name.size(), (isShort ? " " : " r* ") + neededNumber(data, series, options));
    return wording <= Wording::Plain && isPoor(data, series, options) ? name + ", " + kPoor : name;
}

/// Appends the series with line, mark and name; of many, only those of the open context, and an entry that says what
/// the grey ones are.
void appendSeries(std::vector<LegendEntry>& legend, const CalibrationViewData& data, const ParameterValues& options,
                  Wording wording, const Theme& theme) {
    bool others = false, measured = false, proxy = false;
    for (std::size_t i = 0; i < data.series.size(); ++i) {
        const CalibrationSeries& series = data.series[i];
        const SeriesLook look = lookOf(data, i, theme.id);
        if (!isNamed(data, series)) {
            others = true, (series.proxy ? proxy : measured) = true;
            continue;
        }
        legend.push_back(
            lineEntry(legendName(data, series, options, wording), {look.colour, series.own ? 2.0 : 1.2, look.dash}));
        if (series.triples.empty()) continue;
        const PointCloudItem mark = marksOf(series, look);
        setMark(legend.back(), mark.marker, mark.radius, mark.fill, mark.stroke);
    }
    if (others)
        legend.push_back(lineEntry(fmt::format("other contexts, {}", !proxy     ? "measured"
                                                                     : measured ? "measured and proxy"
                                                                                : "proxy"),
                                   {theme.text3, 1.2, {}}));
}

/// "A, C poor fits", once for all.
void appendPoor(std::vector<LegendEntry>& legend, const CalibrationViewData& data, const ParameterValues& options) {
    std::vector<std::string> poor;
    std::size_t named = 0;
    for (const CalibrationSeries& series : data.series)
        if (isNamed(data, series)) {
            ++named;
            if (isPoor(data, series, options))
                poor.push_back(series.own ? std::string(1, series.letter) : plainName(series));
        }
    if (poor.empty()) return;
    const std::string who = poor.size() == named && named > 1 ? "all" : fmt::format("{}", fmt::join(poor, ", "));
    legend.push_back(wordsEntry(fmt::format("{} {}{}", who, kPoor, poor.size() > 1 ? "s" : "")));
}

/// A low picture leaves out entries, so that the others are not cut.
enum class Room { Dock, LowPanel, Panel };

std::vector<LegendEntry> legendIn(const CalibrationViewData& data, const ParameterValues& options, SeriesNames names,
                                  Wording wording, Room room, const Theme& theme) {
    std::vector<LegendEntry> legend;
    if (names != SeriesNames::List) appendSeries(legend, data, options, wording, theme);
    if (names != SeriesNames::List && wording >= Wording::PoorOnce) appendPoor(legend, data, options);
    if (names != SeriesNames::List && wording == Wording::Full && data.anyProxy())
        legend.push_back(wordsEntry("proxy: not losses of the model"));
    if (room == Room::Panel || (room == Room::LowPanel && wording <= Wording::Plain))
        legend.push_back(lineEntry("k = 0: incompressible", {theme.text3, 1, {1, 3}}));
    if (wording == Wording::Full && room == Room::Panel &&
        std::ranges::any_of(data.series, [](const CalibrationSeries& series) { return !series.notes.empty(); }))
        legend.push_back(wordsEntry("†: with notes"));
    for (const CalibrationFailure& failure : data.failures)
        legend.push_back(
            {fmt::format("{}: no curve", failure.letter), Marker::Cross, theme.text3, {theme.text3, 1, {}}, 3});
    return legend;
}

const TextStyle kName{FontFace::Interface, 11}, kNumber{FontFace::Monospace, 11},
    kHead{FontFace::Interface, 11, FontWeight::SemiBold};
constexpr double kRowPitch = 17, kLine = 22, kMark = 42, kGap = 12;
constexpr const char* kHeads[] = {"points", "r*", "residual", ""};
constexpr std::size_t kNoSeries = std::numeric_limits<std::size_t>::max();

/// Measured series before proxies, then those of the open context before others, then by ascending retention.
std::vector<std::size_t> ranked(const CalibrationViewData& data, const ParameterValues& options) {
    std::vector<std::size_t> order(data.series.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, {}, [&](std::size_t i) {
        const CalibrationSeries& series = data.series[i];
        return std::tuple(series.proxy, !series.own, leadingRetention(data, series, options));
    });
    return order;
}

} // namespace

std::string contextBehind(const CalibrationSeries& series) {
    return series.foreign ? fmt::format(" (context {})", series.context) : std::string();
}

std::string nameOf(const CalibrationSeries& series) {
    return plainName(series) + (series.proxy || series.live ? " (" + kindOf(series) + ")" : "");
}

std::string fitWords(const CalibrationViewData& data, const CalibrationSeries& series, const ParameterValues& options) {
    const std::string residual = residualText(data, series, options);
    const std::size_t contexts = misfitOf(data, series, options).contexts;
    if (residual.empty()) return "";
    constexpr std::ptrdiff_t kFew = 5; // kvscope calibrate warns below this number
    const auto rows = std::count_if(series.triples.begin(), series.triples.end(), [](const CalibrationTriple& triple) {
        return triple.retention > 0 && triple.retention < 1;
    });
    return fmt::format("residual {}{}{}{}", residual, contexts > 0 ? fmt::format(" over {} contexts", contexts) : "",
                       rows > 0 && rows < kFew ? fmt::format(" of few rows ({})", rows) : "",
                       isPoor(data, series, options) ? std::string(": ") + kPoor : "");
}

std::vector<LegendEntry> calibrationLegend(const CalibrationViewData& data, const ParameterValues& options,
                                           SeriesNames names, const Viewport& viewport) {
    const Room room = viewport.height < 180 ? Room::Dock : viewport.height < 210 ? Room::LowPanel : Room::Panel;
    for (const Wording wording : {Wording::Full, Wording::Plain, Wording::PoorOnce}) {
        if (room == Room::Dock && wording == Wording::Full) continue;
        std::vector<LegendEntry> legend = legendIn(data, options, names, wording, room, themeOf(viewport.theme));
        if (isTopLegendWhole(viewport, legend)) return legend;
    }
    return legendIn(data, options, names, room == Room::Panel ? Wording::Names : Wording::Letters, room,
                    themeOf(viewport.theme));
}

SeriesList::SeriesList(const CalibrationViewData& data, const ParameterValues& options, const TextService& text)
    : m_data(data) {
    const auto widen = [&](double& width, const std::string& words, const TextStyle& style) {
        width = std::max(width, words.empty() ? 0 : text.measure(words, style).width);
    };
    for (int column = 0; column < kColumns; ++column) widen(m_widths[column], kHeads[column], kHead);
    for (const std::size_t i : ranked(data, options)) {
        const CalibrationSeries& series = data.series[i];
        if (series.proxy && !m_rows.empty() && m_rows.back().series != kNoSeries &&
            !data.series[m_rows.back().series].proxy)
            m_rows.push_back({kNoSeries, "by proxy, ranked apart", {}});
        const bool underHeading = std::ranges::find(m_rows, kNoSeries, &Row::series) != m_rows.end();
        Row row{i, underHeading ? plainName(series) : nameOf(series), {}};
        const double points = neededBy(series, options).ofPoints;
        row.cells[Points] = std::isnan(points) ? "" : formatFixed(points, 2);
        row.cells[Needed] = neededNumber(data, series, options);
        row.cells[Residual] = residualText(data, series, options);
        row.cells[Verdict] = isPoor(data, series, options) ? kPoor : "";
        widen(m_names, row.name, kName);
        for (int column = 0; column < kColumns; ++column)
            widen(m_widths[column], row.cells[column], column == Verdict ? kName : kNumber);
        m_rows.push_back(std::move(row));
    }
    m_names = std::min(m_names, 160.0);
    m_width = kMark + m_names;
    for (const double width : m_widths) m_width += width > 0 ? kGap + width : 0;
}

double SeriesList::height() const { return kRowPitch * static_cast<double>(m_rows.size() + 1); }

void SeriesList::draw(SceneBuilder& builder, Point topLeft, const Theme& theme) const {
    const auto eachColumn = [&](const auto& tell) {
        double right = topLeft.x + kMark + m_names;
        for (int column = 0; column < kColumns; ++column)
            if (m_widths[column] > 0) tell(column, right += kGap + m_widths[column]);
    };
    double y = topLeft.y + kRowPitch / 2;
    eachColumn([&](int column, double right) {
        if (*kHeads[column]) builder.label({right, y}, kHeads[column], kHead, theme.text2, HorizontalAlign::Right);
    });
    for (const Row& row : m_rows) {
        y += kRowPitch;
        if (row.series == kNoSeries) {
            builder.label({topLeft.x, y}, row.name, kHead, theme.text2);
            continue;
        }
        const CalibrationSeries& series = m_data.series[row.series];
        const SeriesLook look = lookOf(m_data, row.series, theme.id);
        builder.line({topLeft.x, y}, {topLeft.x + kLine, y}, {look.colour, series.own ? 2.0 : 1.2, look.dash});
        if (!series.triples.empty()) {
            PointCloudItem mark = marksOf(series, look);
            mark.points = std::make_shared<std::vector<Point>>(1, Point{topLeft.x + kLine + 9, y});
            builder.points(std::move(mark));
        }
        builder.label({topLeft.x + kMark, y}, builder.elide(row.name, kName, m_names), kName, theme.text1);
        eachColumn([&](int column, double right) {
            const bool unsure = column == Needed && !row.cells[Verdict].empty();
            if (!row.cells[column].empty())
                builder.label({right, y}, row.cells[column], column == Verdict ? kName : kNumber,
                              column == Verdict ? theme.warning
                              : unsure          ? theme.text3
                                                : theme.text1,
                              HorizontalAlign::Right);
        });
    }
}

} // namespace kvscope
