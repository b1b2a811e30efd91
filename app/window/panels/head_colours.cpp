// Colours and legend of the head picker; a narrow panel has room for two or three numbers.
#include "app/window/panels/head_colours.h"

#include "app/window/style/appearance.h"
#include "app/window/style/number_text.h"
#include "views/scene/axes.h"

#include <QFontMetricsF>
#include <QPainter>

#include <algorithm>
#include <cmath>
#include <utility>

namespace kvscope {

namespace {

constexpr double kLowError = 0.03, kHighError = 1; // the interesting range of errors
constexpr const char* kMap = "viridis";
constexpr double kTickLength = 3, kNumberGap = 6;

double placeOfError(double error) {
    return std::clamp(std::log(std::max(error, kLowError) / kLowError) / std::log(kHighError / kLowError), 0.0, 1.0);
}

std::vector<HeadColours::Number> errorNumbers() {
    std::vector<HeadColours::Number> numbers;
    for (const auto& [error, text] : {std::pair(kLowError, "≤0.03"), {kHighError, "≥1"}, {0.1, "0.1"}, {0.3, "0.3"}})
        numbers.push_back({placeOfError(error), QString::fromUtf8(text)});
    return numbers;
}

} // namespace

HeadColours::HeadColours(const MeasureCard& measure, std::vector<double> values)
    : m_isError(measure.id == "output_error"),
      m_scale(std::move(values), measure.isSigned, measure.id, "heads", kMap, {}) {}

Colour HeadColours::colourOf(double value) const {
    return m_isError ? colourMap(kMap, placeOfError(value)) : m_scale.colourOf(value);
}

Colour HeadColours::colourAt(double place) const {
    return m_isError ? colourMap(kMap, place) : colourMap(m_scale.colourMapName(), place, m_scale.inverted());
}

std::vector<HeadColours::Number> HeadColours::numbers() const {
    if (m_isError) return errorNumbers();
    if (m_scale.isEmpty()) return {};
    const ValueRange range = m_scale.range();
    std::vector<Number> numbers{{0, fromUtf8(formatBound(*range.low))}, {1, fromUtf8(formatBound(*range.high))}};
    if (m_scale.isSigned()) {
        numbers.push_back({0.5, "0"});
        return numbers;
    }
    for (const Tick& tick : linearTicks(*range.low, *range.high, 4))
        numbers.push_back({m_scale.place(tick.value), fromUtf8(tick.label)});
    return numbers;
}

std::vector<PlacedNumber> placeNumbers(std::span<const HeadColours::Number> numbers, double barWidth, double gap,
                                       const std::function<double(const QString&)>& widthOf) {
    std::vector<PlacedNumber> placed;
    for (const HeadColours::Number& number : numbers) {
        const double tick = number.place * barWidth, width = widthOf(number.text);
        const double left = std::clamp(tick - width / 2, 0.0, std::max(0.0, barWidth - width));
        const bool isFree = std::ranges::all_of(placed, [&](const PlacedNumber& other) {
            return left >= other.left + other.width + gap || left + width + gap <= other.left;
        });
        if (isFree) placed.push_back({tick, left, width, number.text});
    }
    return placed;
}

void drawColourBar(QPainter& painter, const QRectF& bar, const HeadColours& colours) {
    const Theme& theme = chrome();
    for (int x = 0; x < qRound(bar.width()); ++x)
        painter.fillRect(QRectF(bar.left() + x, bar.top(), 1, bar.height()),
                         qColor(colours.colourAt((x + 0.5) / bar.width())));
    const QFontMetricsF metrics = painter.fontMetrics();
    const double top = bar.bottom() + px(kTickLength);
    const std::vector<HeadColours::Number> numbers = colours.numbers();
    for (const PlacedNumber& number : placeNumbers(numbers, bar.width(), px(kNumberGap), [&](const QString& text) {
             return metrics.horizontalAdvance(text);
         })) {
        const double x = std::clamp(bar.left() + number.tick, bar.left() + 0.5, bar.right() - 0.5);
        painter.setPen(qColor(theme.axis));
        painter.drawLine(QPointF(x, bar.bottom()), QPointF(x, top));
        painter.setPen(qColor(theme.text3));
        painter.drawText(QRectF(bar.left() + number.left, top, number.width, metrics.height()),
                         Qt::AlignLeft | Qt::AlignTop | Qt::TextDontClip, number.text);
    }
}

} // namespace kvscope
