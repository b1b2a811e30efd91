// How values become colours of a column. The chosen range is stored as values, not as places on the column, so that a
// value keeps its colour when the shown values change.
#include "views/common/colour_scale.h"

#include "views/common/bar_labels.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <iterator>
#include <limits>

namespace kvscope {

namespace {

constexpr std::size_t kBins = 60;
constexpr double kNoLevel = -std::numeric_limits<double>::infinity();

std::string percentOf(double share) {
    return (share > 0 && share < 5e-4 ? "<0.1" : formatFixed(100 * share, 1)) + " %";
}

} // namespace

ColourScale::ColourScale(Kind kind, std::string quantity, std::string owners, std::string map, bool inverted)
    : m_kind(kind), m_quantity(std::move(quantity)), m_owners(std::move(owners)),
      m_map(isSigned() ? "rdbu" : std::move(map)), m_inverted(inverted) {}

void ColourScale::setEnds(double low, double high) {
    m_low = m_columnLow = low;
    m_high = m_columnHigh = high;
}

void ColourScale::stretchColumn(double below, double above) {
    m_columnLow -= below;
    m_columnHigh += above;
}

void ColourScale::choose(const ValueRange& chosen) {
    if (!chosen.applies(m_quantity)) return;
    double low = m_low, high = m_high;
    if (isSigned()) {
        high = levelOfValue(std::max(std::abs(chosen.low.value_or(0)), std::abs(chosen.high.value_or(0))));
        low = -high;
    } else {
        // A chosen end without a logarithm is ignored: the scale keeps its own.
        if (chosen.low && (!isLogarithmic() || *chosen.low > 0)) low = levelOfValue(*chosen.low);
        if (chosen.high && (!isLogarithmic() || *chosen.high > 0)) high = levelOfValue(*chosen.high);
    }
    if (!(low < high)) return; // one end was chosen beyond the automatic other end
    m_chosen = true;
    m_low = low;
    m_high = high;
    m_columnLow = std::min(m_columnLow, isLogarithmic() ? std::floor(low) : low);
    m_columnHigh = std::max(m_columnHigh, isLogarithmic() ? std::ceil(high) : high);
}

double ColourScale::valueOfLevel(double level) const {
    return isLogarithmic() ? std::pow(10.0, level) : m_kind == Kind::SignedRoot ? level * std::abs(level) : level;
}

double ColourScale::levelOfValue(double value) const {
    return isLogarithmic()              ? std::log10(value)
           : m_kind == Kind::SignedRoot ? std::copysign(std::sqrt(std::abs(value)), value)
                                        : value;
}

ValueRange ColourScale::range() const {
    ValueRange range;
    range.low = valueOfLevel(m_low);
    range.high = valueOfLevel(m_high);
    range.quantity = m_quantity;
    return range;
}

double ColourScale::valueAt(double place) const {
    return valueOfLevel(m_columnLow + std::clamp(place, 0.0, 1.0) * (m_columnHigh - m_columnLow));
}

std::vector<double> ColourScale::sortedLevels() const {
    std::vector<double> levels;
    visitLevels([&](std::span<const double> piece) {
        std::ranges::copy_if(piece, std::back_inserter(levels), [](double level) { return level != kNoLevel; });
    });
    std::ranges::sort(levels);
    return levels;
}

std::pair<double, double> ColourScale::middle(double leftOut) const {
    const std::vector<double> levels = sortedLevels();
    if (levels.empty()) return {valueOfLevel(m_low), valueOfLevel(m_high)};
    const auto cut = static_cast<std::size_t>(leftOut * static_cast<double>(levels.size()));
    return {valueOfLevel(levels[cut]), valueOfLevel(levels[levels.size() - 1 - cut])};
}

std::pair<double, double> ColourScale::sharesBeyond() const {
    std::int64_t below = 0, above = 0, all = 0;
    visitLevels([&](std::span<const double> piece) {
        all += std::ssize(piece);
        for (const double level : piece) {
            below += level < m_low;
            above += level > m_high;
        }
    });
    const double values = std::max<double>(1, static_cast<double>(all));
    return {static_cast<double>(below) / values, static_cast<double>(above) / values};
}

std::vector<Tick> ColourScale::ticks() const {
    std::vector<Tick> ticks;
    if (isLogarithmic())
        for (double exponent = std::ceil(m_columnLow); exponent <= m_columnHigh; ++exponent)
            ticks.push_back({exponent, {}});
    else if (m_kind == Kind::SignedRoot)
        ticks = {{0, {}}}; // even steps of the root are no round values; the ends have labels
    else
        ticks = linearTicks(m_columnLow, m_columnHigh, 6);
    return ticks;
}

ColourScale::Notation ColourScale::notation() const {
    if (isLogarithmic()) return {decadeLabel, decadeLabel};
    const double low = valueOfLevel(m_columnLow), high = valueOfLevel(m_columnHigh);
    const std::vector<Tick> marks = ticks();
    const BarLabels labels(low, high, marks.size() > 1 ? marks[1].value - marks[0].value : (high - low) / 5);
    const auto end = [labels, chosen = m_chosen](double value) { return labels.end(value, chosen); };
    if (marks.size() < 2) return {end, end};
    return {[labels](double value) { return labels.tick(value); }, end};
}

ColourColumnSpec ColourScale::column() const {
    ColourColumnSpec spec{m_map, m_inverted, ticks(), std::vector<double>(kBins, 0.0)};
    const auto [tickText, endText] = notation();
    const double span = m_columnHigh - m_columnLow, perLevel = static_cast<double>(kBins) / span;
    std::int64_t below = 0, above = 0, all = 0;
    std::array<std::int64_t, kBins> counts{};
    visitLevels([&](std::span<const double> piece) {
        all += std::ssize(piece);
        for (const double level : piece) {
            below += level < m_low;
            above += level > m_high;
            const double bin = (level - m_columnLow) * perLevel;
            ++counts[bin > 0 ? static_cast<std::size_t>(std::min(bin, kBins - 1.0)) : 0]; // bin 0 also for NaN
        }
    });
    std::ranges::copy(counts, spec.histogram.begin());
    if (const auto only = onlyValue()) { // no value has another colour
        spec.ticks = {{(levelOfValue(*only) - m_columnLow) / span, endText(*only)}};
        return spec;
    }
    for (Tick& tick : spec.ticks) tick = {(tick.value - m_columnLow) / span, tickText(valueOfLevel(tick.value))};
    spec.low = (m_low - m_columnLow) / span;
    spec.high = (m_high - m_columnLow) / span;
    spec.lowLabel = (below > 0 ? "≤" : "") + endText(valueOfLevel(m_low));
    spec.highLabel = (above > 0 ? "≥" : "") + endText(valueOfLevel(m_high));
    const auto note = [all](std::int64_t beyond) {
        return beyond == 0 ? std::string() : percentOf(static_cast<double>(beyond) / static_cast<double>(all));
    };
    spec.lowNote = note(below);
    spec.highNote = note(above);
    return spec;
}

ValueScale::ValueScale(std::vector<double> values, bool isSigned, std::string quantity, std::string owners,
                       std::string map, const ValueRange& chosen)
    : ColourScale(isSigned ? Kind::Signed : Kind::Linear, std::move(quantity), std::move(owners), std::move(map),
                  false),
      m_values(std::move(values)) {
    std::erase_if(m_values, [](double value) { return !std::isfinite(value); });
    if (!m_values.empty()) {
        const auto [least, most] = std::ranges::minmax_element(m_values);
        double low = *least, high = *most;
        const bool isAlike = high - low < 1e-12 * std::max(1.0, std::abs(high));
        if (low == high && (!isSigned || low == 0)) setOnlyValue(low); // other signed values are read against 0
        if (isSigned) {
            high = std::max({std::abs(low), std::abs(high), 1e-12});
            low = -high;
        } else if (isAlike) {
            high = low + std::max(1.0, std::abs(low)); // beyond 2^53 adding 1 changes nothing
        }
        setEnds(low, high);
    }
    choose(chosen);
}

std::optional<SettingChange> rangeSetTo(const ColourScale& scale, double low, double high) {
    if (!(low < high) || !std::isfinite(low) || !std::isfinite(high) || (scale.isLogarithmic() && !(low > 0)))
        return std::nullopt;
    const ValueRange range{low, high, scale.quantity()};
    return SettingChange{.options = {{kValueRangeOption, range.text()}}, .step = "Colour range"};
}

ParameterValues withCommonRange(const View& view, const std::vector<const ViewInput*>& inputs,
                                ParameterValues options) {
    if (!options.has(kValueRangeOption) || !options.isDefault(kValueRangeOption)) return options;
    // Three digits, rounded outwards so that every value stays inside: a bar prints a chosen end with all its digits.
    const auto outwards = [](double value, bool up) {
        if (value == std::round(value)) return value;
        const double rounded = roundedValue(value);
        if (up ? rounded >= value : rounded <= value) return rounded;
        if (std::abs(rounded - value) <= 1e-9 * std::abs(value)) return rounded; // an error of the logarithm
        const double digit = std::pow(10.0, std::floor(std::log10(std::abs(value))) - 2);
        return roundedValue(up ? rounded + digit : rounded - digit);
    };
    ValueRange common;
    int ranges = 0;
    for (const ViewInput* input : inputs) {
        const auto own = view.valueRange(*input, options);
        if (!own) continue;
        if (ranges++ > 0 && own->quantity != common.quantity) return options;
        common = {std::min(common.low.value_or(INFINITY), outwards(*own->low, false)),
                  std::max(common.high.value_or(-INFINITY), outwards(*own->high, true)), own->quantity};
    }
    if (ranges > 1 && *common.low < *common.high) options.setText(kValueRangeOption, common.text());
    return options;
}

SettingChange automaticRange() { return {.options = {{kValueRangeOption, "auto"}}, .step = "Colour range"}; }
SettingChange ownRanges() { return {.options = {{kValueRangeOption, "each"}}, .step = "Colour range"}; }

PointFacts rangeFacts(const ColourScale& scale, const Scene& scene, Point at) {
    const auto place = placeOnColumn(scene, at);
    if (!place || pickAt(scene, at, 0) != kColourColumn) return {};
    const auto [below, above] = scale.sharesBeyond();
    const ValueRange range = scale.range();
    PointFacts facts;
    if (const auto only = scale.onlyValue()) {
        facts.rows = {{"all " + scale.owners(), formatBound(*only)}};
        return facts;
    }
    facts.rows = {
        {"here", formatBound(roundedValue(scale.valueAt(*place)))},
        {"colours from",
         fmt::format("{}, below: {} of the {}", formatBound(*range.low), percentOf(below), scale.owners())},
        {"to", fmt::format("{}, above: {} of the {}", formatBound(*range.high), percentOf(above), scale.owners())}};
    return facts;
}

} // namespace kvscope
