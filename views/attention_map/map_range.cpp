// The range of the colours as something that is pulled, typed and read. It is stored as values, not as places on the
// column: zooming changes which cells are shown and how far the column reaches, but no colour of any cell.
#include "views/attention_map/map_range.h"

#include "views/view_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace kvscope {

namespace {

constexpr double kClosest = 0.01; // of the column, between the two ends

std::string shareText(double share) {
    return share > 0 && share < 5e-4 ? "less than 0.1 % of the cells" : formatFixed(100 * share, 1) + " % of the cells";
}

} // namespace

std::optional<Adoption> endMovedTo(const MapScale& scale, bool highEnd, double place) {
    const ValueRange now = scale.range();
    if (scale.isSigned()) {
        const double magnitude = std::abs(scale.valueAt(highEnd ? std::max(place, 0.5 + kClosest) : std::min(place, 0.5 - kClosest)));
        return rangeSetTo(scale, -roundedValue(magnitude), roundedValue(magnitude));
    }
    if (highEnd)
        return rangeSetTo(scale, *now.low, roundedValue(scale.valueAt(std::max(place, scale.placeOf(*now.low) + kClosest))));
    return rangeSetTo(scale, roundedValue(scale.valueAt(std::min(place, scale.placeOf(*now.high) - kClosest))), *now.high);
}

std::optional<Adoption> rangeSetTo(const MapScale& scale, double low, double high) {
    if (!(low < high) || !std::isfinite(low) || !std::isfinite(high) || (scale.isLogarithmic() && !(low > 0)))
        return std::nullopt;
    ValueRange range;
    range.low = low;
    range.high = high;
    range.quantity = scale.quantity();
    Adoption adoption;
    adoption.options = {{kValueRangeOption, range.text()}};
    adoption.step = "Colour range";
    return adoption;
}

PointFacts rangeFacts(const MapScale& scale, const Scene& scene, Point at) {
    const auto place = placeOnColumn(scene, at);
    const PickId pick = pickAt(scene, at, 0);
    if (!place || (pick.kind != PickId::Kind::Legend && pick != kLowHandle && pick != kHighHandle))
        return {};
    const auto [below, above] = scale.sharesBeyond();
    const ValueRange range = scale.range();
    PointFacts facts;
    facts.rows = {{"here", formatBound(roundedValue(scale.valueAt(*place)))},
                  {"colours from", formatBound(*range.low) + ", below: " + shareText(below)},
                  {"to", formatBound(*range.high) + ", above: " + shareText(above)}};
    return facts;
}

} // namespace kvscope
