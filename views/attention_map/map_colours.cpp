// Attention spans many powers of ten, so the scale decides what is seen: logarithmic by default, linear for the few
// large weights, by row where rows differ in sharpness, by rank where only the order matters.
#include "views/attention_map/map_colours.h"

#include "core/base/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace kvscope {

namespace {

constexpr std::size_t kBins = 60;
constexpr double kDecadesBelowFloor = 2; // room to pull the lower end down, and to see what lies there

float largestMagnitude(const std::vector<float>& cells) {
    float largest = 0;
    for (const float cell : cells)
        largest = std::isnan(cell) ? largest : std::max(largest, std::abs(cell));
    return largest;
}

/// Where an axis from 0 ends.
double topOf(const std::vector<float>& cells) {
    const float largest = largestMagnitude(cells);
    return largest > 0 ? static_cast<double>(largest) : 1;
}

std::vector<float> topsOfRows(const HostTensor& cells) {
    std::vector<float> tops;
    for (std::int64_t row = 0; row < cells.shape[0]; ++row) {
        const auto begin = cells.data.begin() + row * cells.shape[1];
        tops.push_back(largestMagnitude({begin, begin + cells.shape[1]}));
    }
    return tops;
}

std::vector<float> sortedCells(const HostTensor& cells) {
    std::vector<float> sorted;
    std::copy_if(cells.data.begin(), cells.data.end(), std::back_inserter(sorted), [](float c) { return !std::isnan(c); });
    std::sort(sorted.begin(), sorted.end());
    return sorted;
}

std::string decadeLabel(double exponent) {
    return exponent == 0 ? "1" : fmt::format("1e{}{:.0f}", exponent < 0 ? "\u2212" : "", std::abs(exponent));
}

} // namespace

void checkMapRange(std::string_view text) {
    const ValueRange range = ValueRange::parse(text);
    constexpr std::array known{"", "weight", "row", "rank", "logit", "cosine", "difference"};
    if (std::find(known.begin(), known.end(), range.quantity) == known.end())
        throw Error({.sentence = fmt::format("an attention map has no values called '{}'", range.quantity),
                     .place = "option range",
                     .remedy = "Write weight, row, rank, logit, cosine or difference before the colon, or leave it out"});
}

MapScale::MapScale(const AttentionMapData& data, const ParameterValues& options) : m_data(data) {
    const std::string& scale = options.choice("scale");
    m_map = options.choice("colours");
    m_inverted = options.flag("invert");
    m_kind = !data.isWeight     ? Kind::Signed
             : scale == "log"    ? Kind::Logarithmic
             : scale == "linear" ? Kind::Linear
             : scale == "row"    ? Kind::Row
                                 : Kind::Rank;
    m_quantity = data.isDifference ? "difference" : data.rowsAreKeys ? "cosine" : !data.isWeight ? "logit" : "weight";
    switch (m_kind) {
    case Kind::Logarithmic:
        m_low = static_cast<double>(options.integer("floor"));
        m_high = 0;
        m_columnLow = m_low - kDecadesBelowFloor;
        m_columnHigh = 0;
        break;
    case Kind::Linear: m_high = m_columnHigh = topOf(data.cells.data); break;
    case Kind::Row:
        m_quantity = "row";
        m_rowTops = topsOfRows(data.cells);
        break;
    case Kind::Rank:
        m_quantity = "rank";
        m_sorted = sortedCells(data.cells);
        break;
    case Kind::Signed:
        m_high = m_columnHigh = topOf(data.cells.data);
        m_low = m_columnLow = -m_high;
        m_map = "rdbu"; // signed values, centred at 0
        break;
    }
    choose(ValueRange::parse(options.text(kValueRangeOption)));
}

/// The chosen ends where they mean something on this scale; the column grows to hold them.
void MapScale::choose(const ValueRange& chosen) {
    if (!chosen.applies(m_quantity))
        return;
    double low = m_low, high = m_high;
    if (m_kind == Kind::Signed) {
        high = std::max(std::abs(chosen.low.value_or(0)), std::abs(chosen.high.value_or(0)));
        low = -high;
    } else {
        // No logarithm: the end stays where the scale has it.
        const bool positive = m_kind == Kind::Logarithmic;
        if (chosen.low && (!positive || *chosen.low > 0))
            low = levelOfValue(*chosen.low);
        if (chosen.high && (!positive || *chosen.high > 0))
            high = levelOfValue(*chosen.high);
    }
    if (!(low < high))
        return; // one end was chosen, beyond what the other is by itself
    m_chosen = true;
    m_low = low;
    m_high = high;
    const bool decades = m_kind == Kind::Logarithmic;
    m_columnLow = std::min(m_columnLow, decades ? std::floor(low) : low);
    m_columnHigh = std::max(m_columnHigh, decades ? std::ceil(high) : high);
}

double MapScale::level(float value, std::int64_t row) const {
    const auto number = static_cast<double>(value);
    switch (m_kind) {
    case Kind::Logarithmic: return number > 0 ? std::log10(number) : -std::numeric_limits<double>::infinity();
    case Kind::Row: {
        const auto top = static_cast<double>(m_rowTops[static_cast<std::size_t>(row)]);
        return top > 0 ? number / top : 0;
    }
    case Kind::Rank: {
        const auto below = std::lower_bound(m_sorted.begin(), m_sorted.end(), value) - m_sorted.begin();
        return m_sorted.size() > 1 ? static_cast<double>(below) / static_cast<double>(m_sorted.size() - 1) : 1;
    }
    case Kind::Linear:
    case Kind::Signed: break;
    }
    return number;
}

double MapScale::valueOfLevel(double level) const {
    return m_kind == Kind::Logarithmic ? std::pow(10.0, level) : level;
}

double MapScale::levelOfValue(double value) const {
    return m_kind == Kind::Logarithmic ? std::log10(value) : value;
}

ValueRange MapScale::range() const {
    ValueRange range;
    range.low = valueOfLevel(m_low);
    range.high = valueOfLevel(m_high);
    range.quantity = m_quantity;
    return range;
}

double MapScale::valueAt(double place) const {
    return valueOfLevel(m_columnLow + std::clamp(place, 0.0, 1.0) * (m_columnHigh - m_columnLow));
}

double MapScale::placeOf(double value) const {
    return std::clamp((levelOfValue(value) - m_columnLow) / (m_columnHigh - m_columnLow), 0.0, 1.0);
}

/// The levels of the cells that are not masked.
template <class Visit> void MapScale::eachLevel(const Visit& visit) const {
    const std::int64_t height = m_data.cells.shape[0], width = m_data.cells.shape[1];
    for (std::int64_t row = 0; row < height; ++row)
        for (std::int64_t i = row * width; i < (row + 1) * width; ++i)
            if (!std::isnan(m_data.cells.data[static_cast<std::size_t>(i)]))
                visit(levelOfCell(row, i));
}

std::vector<double> MapScale::sortedLevels() const {
    std::vector<double> levels;
    eachLevel([&](double at) { levels.push_back(at); });
    std::sort(levels.begin(), levels.end());
    return levels;
}

std::pair<double, double> MapScale::middle(double leftOut) const {
    std::vector<double> levels = sortedLevels();
    std::erase(levels, -std::numeric_limits<double>::infinity()); // weights that underflowed have no logarithm
    if (levels.empty())
        return {valueOfLevel(m_low), valueOfLevel(m_high)};
    const auto cut = static_cast<std::size_t>(leftOut * static_cast<double>(levels.size()));
    return {valueOfLevel(levels[cut]), valueOfLevel(levels[levels.size() - 1 - cut])};
}

std::pair<double, double> MapScale::sharesBeyond() const {
    std::int64_t below = 0, above = 0, all = 0;
    eachLevel([&](double at) {
        ++all;
        below += at < m_low;
        above += at > m_high;
    });
    const double cells = std::max<double>(1, static_cast<double>(all));
    return {static_cast<double>(below) / cells, static_cast<double>(above) / cells};
}

std::string MapScale::name() const {
    const std::string ends = m_chosen ? fmt::format(", {} to {}", formatBound(valueOfLevel(m_low)), formatBound(valueOfLevel(m_high))) : "";
    switch (m_kind) {
    case Kind::Logarithmic: return m_chosen ? "log10" + ends : fmt::format("log10, floor {}", decadeLabel(m_low));
    case Kind::Linear: return "linear" + ends;
    case Kind::Row: return "each row by its largest" + ends;
    case Kind::Rank: return "rank of the cell" + ends;
    case Kind::Signed: break;
    }
    return "signed, centred at 0" + ends;
}

std::vector<Tick> MapScale::ticks() const {
    std::vector<Tick> ticks;
    if (m_kind == Kind::Logarithmic)
        for (double exponent = std::ceil(m_columnLow); exponent <= m_columnHigh; ++exponent)
            ticks.push_back({exponent, decadeLabel(exponent)});
    else
        ticks = linearTicks(m_columnLow, m_columnHigh, 6);
    for (Tick& tick : ticks)
        tick.value = (tick.value - m_columnLow) / (m_columnHigh - m_columnLow);
    return ticks;
}

ColourColumnSpec MapScale::column() const {
    ColourColumnSpec spec{m_map, m_inverted, ticks(), std::vector<double>(kBins, 0.0)};
    const double span = m_columnHigh - m_columnLow, perLevel = static_cast<double>(kBins) / span;
    bool below = false, above = false;
    std::array<std::int64_t, kBins> counts{};
    eachLevel([&](double at) {
        below |= at < m_low;
        above |= at > m_high;
        ++counts[static_cast<std::size_t>(std::clamp((at - m_columnLow) * perLevel, 0.0, kBins - 1.0))];
    });
    std::copy(counts.begin(), counts.end(), spec.histogram.begin());
    spec.low = (m_low - m_columnLow) / span;
    spec.high = (m_high - m_columnLow) / span;
    spec.lowLabel = (below ? "≤" : "") + formatBound(valueOfLevel(m_low));
    spec.highLabel = (above ? "≥" : "") + formatBound(valueOfLevel(m_high));
    return spec;
}

} // namespace kvscope
