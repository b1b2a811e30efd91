// The target quality and the retention that each policy needs for it. Texts avoid the measured points.
#include "views/calibration/needed_marks.h"

#include "core/metrics/measure_values.h"
#include "views/calibration/calibration_curves.h"

#include <algorithm>

namespace kvscope {

namespace {

const TextStyle kTauStyle{FontFace::Interface, 11, FontWeight::SemiBold};

bool coversAPoint(const Box& box, const PlotFrame& frame, const CalibrationViewData& data) {
    constexpr double kMark = 4;
    const Box around = box.grown(kMark);
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
    drawAcross(builder, frame, tau, {theme.ink, 1, {4, 3}});
}

void nameTau(SceneBuilder& builder, const PlotFrame& frame, const CalibrationViewData& data, double tau,
             const Theme& theme) {
    const std::string text = "τ = " + formatShort(tau);
    const double y = frame.toPixels(0, tau).y, width = builder.width(text, kTauStyle) + 6;
    const double last = frame.plot.right() - width - 3;
    Box plate{frame.plot.x + 3, y + 2, width, 15};
    for (double x = plate.x; coversAPoint(plate, frame, data) && x < last; x += 8) plate.x = x;
    if (coversAPoint(plate, frame, data)) plate.x = frame.plot.x + 3; // points everywhere
    builder.rectangle(plate, withAlpha(theme.canvas, 0.85));          // curves run here
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

} // namespace kvscope
