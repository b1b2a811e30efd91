// The wanted quality and the retention that each policy needs for it. Words stand where they hide no point: the points are
// what was measured, the rest is drawn through them.
#include "views/calibration/needed_marks.h"

#include "views/calibration/calibration_curves.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace kvscope {

namespace {

const TextStyle kBoxStyle{FontFace::Monospace, 11, FontWeight::Bold}, kTauStyle{FontFace::Interface, 11, FontWeight::SemiBold};

/// How much a box says, from the most to the least, with its height, the room left and right of its words, and how far up
/// the plot it may stand: a number alone is small enough to stand anywhere.
enum class BoxWords { Whole, LetterAndNumber, Number };
struct BoxForm {
    BoxWords words;
    double height, inset, mostOfThePlot;
};
constexpr std::array<BoxForm, 3> kForms = {{{BoxWords::Whole, 19, 6, 0.35}, {BoxWords::LetterAndNumber, 15, 4, 0.35}, {BoxWords::Number, 15, 3, 0.65}}};

std::string wordsOf(const CalibrationSeries& series, double needed, BoxWords words) {
    const std::string number = formatFixed(needed, 3);
    if (words == BoxWords::Number)
        return number;
    if (words == BoxWords::LetterAndNumber)
        return fmt::format("{} {}", series.letter, number);
    return fmt::format("{} r* = {}{}", series.letter, number, series.proxy ? " proxy" : "");
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

Point ringPlace(const PlotFrame& frame, const CalibrationSeries& series, const ParameterValues& options) {
    return frame.toPixels(neededBy(series, options).retention, options.real("tau"));
}

} // namespace

void drawTau(SceneBuilder& builder, const PlotFrame& frame, double tau, const Theme& theme) {
    const double y = frame.toPixels(0, tau).y;
    builder.line({frame.plot.x, y}, {frame.plot.right(), y}, {theme.ink, 1, {4, 3}});
}

void nameTau(SceneBuilder& builder, const PlotFrame& frame, const CalibrationViewData& data, double tau, const Theme& theme) {
    const std::string text = "τ = " + formatShort(tau);
    const double y = frame.toPixels(0, tau).y, width = builder.width(text, kTauStyle) + 6;
    const double last = frame.plot.right() - width - 3;
    Box plate{frame.plot.x + 3, y + 2, width, 15};
    for (double x = plate.x; coversAPoint(plate, frame, data) && x < last; x += 8)
        plate.x = x;
    if (coversAPoint(plate, frame, data))
        plate.x = frame.plot.x + 3; // points everywhere
    builder.rectangle(plate, withAlpha(theme.canvas, 0.85)); // curves run here
    builder.text({plate.x + 3, plate.y + 1}, text, kTauStyle, theme.text1, HorizontalAlign::Left, VerticalAlign::Top);
}

void drawNeeded(SceneBuilder& builder, const PlotFrame& frame, const CalibrationViewData& data, const std::vector<std::size_t>& series,
                const ParameterValues& options, const Theme& theme) {
    for (const std::size_t index : series) {
        const Point ring = ringPlace(frame, data.series[index], options);
        const Colour colour = lookOf(data, index, theme.id).colour;
        builder.line(ring, {ring.x, frame.plot.bottom()}, {colour, 1.2, {}});
        builder.circle(ring, 5, theme.canvas, {colour, 2, {}}, {PickId::Kind::Handle, static_cast<std::int64_t>(index)});
    }
}

namespace {

/// Looks for places of all boxes of one form: each left or right of its line, if it can be where no other line runs, in the
/// lowest row that leaves places to the others. There are as many as panes, so trying on is quick.
class Placing {
public:
    Placing(const PlotFrame& frame, const CalibrationViewData& data, std::vector<double> lines, const BoxForm& form)
        : m_frame(frame), m_data(data), m_lines(std::move(lines)), m_height(form.height),
          m_rows(static_cast<int>(form.mostOfThePlot * frame.plot.height / (form.height + kBetween))) {}

    /// The boxes from this one on; they keep their widths.
    bool place(std::vector<NeededBox>& boxes, std::size_t next = 0) const {
        if (next == boxes.size())
            return true;
        Box& box = boxes[next].box;
        for (const bool acrossLines : {false, true})
            for (int row = 0; row < m_rows; ++row)
                for (const double left : {m_lines[next] - box.width - 5, m_lines[next] + 5}) {
                    box = {left, m_frame.plot.bottom() - kBetween - m_height - (m_height + kBetween) * row, box.width, m_height};
                    if (hidesALine(box) == acrossLines && isFree(boxes, next) && place(boxes, next + 1))
                        return true;
                }
        return false;
    }

private:
    bool hidesALine(const Box& box) const {
        return std::any_of(m_lines.begin(), m_lines.end(), [&](double x) { return box.x < x + 1 && x - 1 < box.right(); });
    }

    bool isFree(const std::vector<NeededBox>& boxes, std::size_t index) const {
        const Box& box = boxes[index].box;
        const bool inside = box.x >= m_frame.plot.x + 4 && box.right() <= m_frame.plot.right() - 4;
        return inside && !coversAPoint(box, m_frame, m_data) &&
               std::none_of(boxes.begin(), boxes.begin() + static_cast<std::ptrdiff_t>(index), [&](const NeededBox& other) { return overlaps(box, other.box); });
    }

    static constexpr double kBetween = 4;
    const PlotFrame& m_frame;
    const CalibrationViewData& m_data;
    std::vector<double> m_lines;
    double m_height;
    int m_rows;
};

} // namespace

std::vector<NeededBox> placeNeededBoxes(const PlotFrame& frame, const CalibrationViewData& data, const std::vector<std::size_t>& series,
                                        const ParameterValues& options, const TextService& text) {
    for (const BoxForm& form : kForms) {
        std::vector<NeededBox> boxes;
        std::vector<double> lines;
        for (const std::size_t index : series) {
            NeededBox box{index, wordsOf(data.series[index], neededBy(data.series[index], options).retention, form.words), {}};
            box.box.width = text.measure(box.text, kBoxStyle).width + 2 * form.inset;
            boxes.push_back(std::move(box));
            lines.push_back(ringPlace(frame, data.series[index], options).x);
        }
        if (Placing(frame, data, std::move(lines), form).place(boxes)) // some in boxes and some not would be read as a difference
            return boxes;
    }
    return {};
}

void drawNeededBoxes(SceneBuilder& builder, const std::vector<NeededBox>& boxes, const CalibrationViewData& data, const Theme& theme) {
    for (const NeededBox& one : boxes) {
        const Box& box = one.box;
        builder.rectangle(box, theme.canvas, {lookOf(data, one.series, theme.id).colour, 1.2, {}}, 4,
                          {PickId::Kind::Handle, static_cast<std::int64_t>(one.series)});
        builder.text({box.x + box.width / 2, box.y + box.height / 2}, one.text, kBoxStyle, theme.text1, HorizontalAlign::Centre, VerticalAlign::Middle);
    }
}

} // namespace kvscope
