#pragma once

#include "core/metrics/measures.h"
#include "views/common/colour_scale.h"

#include <QString>

#include <functional>
#include <span>
#include <vector>

class QPainter;
class QRectF;

namespace kvscope {

/// The colours of one measure in the head picker. The output error has one fixed logarithmic range, so that its colours
/// mean the same after every change; any other measure runs over the numbers that are there, a signed one about 0.
class HeadColours {
public:
    HeadColours(const MeasureCard& measure, std::vector<double> values);

    bool hasRange() const { return m_isError || !m_scale.isEmpty(); }
    Colour colourOf(double value) const; ///< not for NaN
    Colour colourAt(double place) const; ///< of the colour bar, 0 left .. 1 right

    struct Number {
        double place = 0;
        QString text;
    };
    /// What stands under the bar: the ends first, then what goes between them if there is room. None without a range.
    std::vector<Number> numbers() const;

private:
    bool m_isError;
    ValueScale m_scale;
};

/// Where a number under a bar stands.
struct PlacedNumber {
    double tick = 0, left = 0, width = 0;
    QString text;
};
/// The numbers that fit beside each other under a bar of this width, inside it: a later one goes where it would come
/// closer than `gap` to an earlier one. `widthOf` as the font has it.
std::vector<PlacedNumber> placeNumbers(std::span<const HeadColours::Number> numbers, double barWidth, double gap,
                                       const std::function<double(const QString&)>& widthOf);

/// The bar with ticks and numbers below it, in the painter's font.
void drawColourBar(QPainter& painter, const QRectF& bar, const HeadColours& colours);

} // namespace kvscope
