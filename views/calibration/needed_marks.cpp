// The wanted quality and the retention that each policy needs for it. Words stand where they hide no point: the points
// are what was measured, the rest is drawn through them.
#include "views/calibration/needed_marks.h"

#include "core/metrics/measure_values.h"
#include "views/calibration/calibration_curves.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace kvscope {

namespace {

const TextStyle kBoxStyle{FontFace::Monospace, 11, FontWeight::Bold},
    kTauStyle{FontFace::Interface, 11, FontWeight::SemiBold};

/// How much a box says, from the most to the least, with its height, the room left and right of its words, and how far
/// up the plot it may stand: a number alone is small enough to stand anywhere.
enum class BoxWords { Whole, LetterAndNumber, Number };
struct BoxForm {
    BoxWords words;
    double height, inset, mostOfThePlot;
};
constexpr std::array<BoxForm, 3> kForms = {
    {{BoxWords::Whole, 19, 6, 0.35}, {BoxWords::LetterAndNumber, 15, 4, 0.35}, {BoxWords::Number, 15, 3, 0.65}}};

/// "A r* = 0.473", of a poor fit "A r* ≈ 0.47".
std::string wordsOf(const CalibrationViewData& data, const CalibrationSeries& series, const ParameterValues& options,
                    BoxWords words) {
    const std::string number = neededNumber(data, series, options);
    if (words == BoxWords::Number)
        return number;
    if (words == BoxWords::LetterAndNumber)
        return fmt::format("{} {}", series.letter, number);
    return fmt::format("{} r* {} {}{}", series.letter, isPoor(data, series, options) ? "≈" : "=", number,
                       series.proxy ? " proxy" : "");
}

bool overlaps(const Box& a, const Box& b) {
    return a.x < b.right() && b.x < a.right() && a.y < b.bottom() && b.y < a.bottom();
}

bool coversAPoint(const Box& box, const PlotFrame& frame, const CalibrationViewData& data) {
    constexpr double kMark = 4;
    const Box around{box.x - kMark, box.y - kMark, box.width + 2 * kMark, box.height + 2 * kMark};
    return std::any_of(data.series.begin(), data.series.end(), [&](const CalibrationSeries& series) {
        return std::any_of(series.triples.begin(), series.triples.end(), [&](const CalibrationTriple& triple) {
            return around.contains(frame.toPixels(triple.retention, triple.quality));
        });
    });
}

/// Dashed where the fit is poor, so that r* does not look as sure as the others.
std::vector<double> dashOf(const CalibrationViewData& data, std::size_t index, const ParameterValues& options) {
    return isPoor(data, data.series[index], options) ? std::vector<double>{3, 3} : std::vector<double>{};
}

Point ringPlace(const PlotFrame& frame, const CalibrationSeries& series, const ParameterValues& options) {
    return frame.toPixels(neededBy(series, options).retention, options.real("tau"));
}

} // namespace

void drawTau(SceneBuilder& builder, const PlotFrame& frame, double tau, const Theme& theme) {
    const double y = frame.toPixels(0, tau).y;
    builder.line({frame.plot.x, y}, {frame.plot.right(), y}, {theme.ink, 1, {4, 3}});
}

void nameTau(SceneBuilder& builder, const PlotFrame& frame, const CalibrationViewData& data, double tau,
             const Theme& theme) {
    const std::string text = "τ = " + formatShort(tau);
    const double y = frame.toPixels(0, tau).y, width = builder.width(text, kTauStyle) + 6;
    const double last = frame.plot.right() - width - 3;
    Box plate{frame.plot.x + 3, y + 2, width, 15};
    for (double x = plate.x; coversAPoint(plate, frame, data) && x < last; x += 8)
        plate.x = x;
    if (coversAPoint(plate, frame, data))
        plate.x = frame.plot.x + 3;                          // points everywhere
    builder.rectangle(plate, withAlpha(theme.canvas, 0.85)); // curves run here
    builder.text({plate.x + 3, plate.y + 1}, text, kTauStyle, theme.text1, HorizontalAlign::Left, VerticalAlign::Top);
}

void drawNeeded(SceneBuilder& builder, const PlotFrame& frame, const CalibrationViewData& data,
                const std::vector<std::size_t>& series, const ParameterValues& options, const Theme& theme) {
    for (const std::size_t index : series) {
        const Point ring = ringPlace(frame, data.series[index], options);
        const Colour colour = lookOf(data, index, theme.id).colour;
        builder.line(ring, {ring.x, frame.plot.bottom()}, {colour, 1.2, dashOf(data, index, options)});
        builder.circle(ring, 5, theme.canvas, {colour, 2, {}},
                       {PickId::Kind::Handle, static_cast<std::int64_t>(index)});
    }
}

namespace {

/// Looks for places of all boxes of one form: each left or right of its line, if it can be where no other line runs, in
/// the lowest row that leaves places to the others. What each box could have by itself is found once; a picture is
/// built anew at every move of the mouse, so the search among these ends after a while.
class Placing {
public:
    Placing(const PlotFrame& frame, const CalibrationViewData& data, std::vector<double> lines, const BoxForm& form)
        : m_frame(frame), m_data(data), m_lines(std::move(lines)), m_height(form.height),
          m_rows(static_cast<int>(form.mostOfThePlot * frame.plot.height / (form.height + kBetween))) {}

    /// All boxes; they keep their widths. False where there is no place for some.
    bool place(std::vector<NeededBox>& boxes) {
        m_places.clear();
        for (std::size_t i = 0; i < boxes.size(); ++i) {
            m_places.push_back(placesOf(m_lines[i], boxes[i].box.width));
            if (m_places.back().empty())
                return false;
        }
        m_triesLeft = kMostTries;
        return placeFrom(boxes, 0);
    }

private:
    /// Inside the plot and over no point, the best first.
    std::vector<Box> placesOf(double line, double width) const {
        std::vector<Box> places;
        for (const bool acrossLines : {false, true})
            for (int row = 0; row < m_rows; ++row)
                for (const double left : {line - width - 5, line + 5}) {
                    const Box box{left, m_frame.plot.bottom() - kBetween - m_height - (m_height + kBetween) * row,
                                  width, m_height};
                    const bool inside = box.x >= m_frame.plot.x + 4 && box.right() <= m_frame.plot.right() - 4;
                    if (inside && hidesALine(box) == acrossLines && !coversAPoint(box, m_frame, m_data))
                        places.push_back(box);
                }
        return places;
    }

    bool placeFrom(std::vector<NeededBox>& boxes, std::size_t next) {
        if (next == boxes.size())
            return true;
        for (const Box& place : m_places[next]) {
            if (--m_triesLeft < 0)
                return false;
            boxes[next].box = place;
            const bool isFree = std::none_of(boxes.begin(), boxes.begin() + static_cast<std::ptrdiff_t>(next),
                                             [&](const NeededBox& other) { return overlaps(place, other.box); });
            if (isFree && placeFrom(boxes, next + 1))
                return true;
        }
        return false;
    }

    bool hidesALine(const Box& box) const {
        return std::any_of(m_lines.begin(), m_lines.end(),
                           [&](double x) { return box.x < x + 1 && x - 1 < box.right(); });
    }

    static constexpr double kBetween = 4;
    static constexpr int kMostTries = 20000; // under a millisecond
    const PlotFrame& m_frame;
    const CalibrationViewData& m_data;
    std::vector<double> m_lines;
    double m_height;
    int m_rows, m_triesLeft = 0;
    std::vector<std::vector<Box>> m_places; // of each box
};

} // namespace

std::vector<NeededBox> placeNeededBoxes(const PlotFrame& frame, const CalibrationViewData& data,
                                        const std::vector<std::size_t>& series, const ParameterValues& options,
                                        const TextService& text) {
    for (const BoxForm& form : kForms) {
        std::vector<NeededBox> boxes;
        std::vector<double> lines;
        for (const std::size_t index : series) {
            NeededBox box{index, wordsOf(data, data.series[index], options, form.words), {}};
            box.box.width = text.measure(box.text, kBoxStyle).width + 2 * form.inset;
            boxes.push_back(std::move(box));
            lines.push_back(ringPlace(frame, data.series[index], options).x);
        }
        if (Placing(frame, data, std::move(lines), form)
                .place(boxes)) // some in boxes and some not would be read as a difference
            return boxes;
    }
    return {};
}

void drawNeededBoxes(SceneBuilder& builder, const std::vector<NeededBox>& boxes, const CalibrationViewData& data,
                     const ParameterValues& options, const Theme& theme) {
    for (const NeededBox& one : boxes) {
        const Box& box = one.box;
        builder.rectangle(box, theme.canvas,
                          {lookOf(data, one.series, theme.id).colour, 1.2, dashOf(data, one.series, options)}, 4,
                          {PickId::Kind::Handle, static_cast<std::int64_t>(one.series)});
        builder.text({box.x + box.width / 2, box.y + box.height / 2}, one.text, kBoxStyle, theme.text1,
                     HorizontalAlign::Centre, VerticalAlign::Middle);
    }
}

} // namespace kvscope
