// Attention spans many powers of ten, so the scale decides what is seen: logarithmic by default, linear for the few
// large weights, by row where rows differ in sharpness, by rank where only the order matters.
#include "views/attention_map/map_colours.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace kvscope {

namespace {

constexpr std::size_t kBins = 40;

float largestMagnitude(const std::vector<float>& cells) {
    float largest = 0;
    for (const float cell : cells)
        largest = std::isnan(cell) ? largest : std::max(largest, std::abs(cell));
    return largest;
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

} // namespace

MapScale::MapScale(const AttentionMapData& data, const ParameterValues& options) : m_data(data) {
    const std::string& scale = options.choice("scale");
    m_map = options.choice("colours");
    m_inverted = options.flag("invert");
    const double largest = static_cast<double>(largestMagnitude(data.cells.data));
    m_kind = !data.isWeight     ? Kind::Signed
             : scale == "log"    ? Kind::Logarithmic
             : scale == "linear" ? Kind::Linear
             : scale == "row"    ? Kind::Row
                                 : Kind::Rank;
    switch (m_kind) {
    case Kind::Logarithmic:
        m_low = static_cast<double>(options.integer("floor"));
        m_high = 0;
        break;
    case Kind::Linear: m_high = largest > 0 ? largest : 1; break;
    case Kind::Row: m_rowTops = topsOfRows(data.cells); break;
    case Kind::Rank: m_sorted = sortedCells(data.cells); break;
    case Kind::Signed:
        m_high = largest > 0 ? largest : 1;
        m_low = -m_high;
        m_map = "rdbu"; // signed values, centred at 0
        break;
    }
}

double MapScale::place(float value, std::int64_t row) const {
    const auto number = static_cast<double>(value);
    double place = 0;
    switch (m_kind) {
    case Kind::Logarithmic: place = number > 0 ? (std::log10(number) - m_low) / (m_high - m_low) : 0; break;
    case Kind::Row: {
        const auto top = static_cast<double>(m_rowTops[static_cast<std::size_t>(row)]);
        place = top > 0 ? number / top : 0;
        break;
    }
    case Kind::Rank: {
        const auto below = std::lower_bound(m_sorted.begin(), m_sorted.end(), value) - m_sorted.begin();
        place = m_sorted.size() > 1 ? static_cast<double>(below) / static_cast<double>(m_sorted.size() - 1) : 1;
        break;
    }
    case Kind::Linear:
    case Kind::Signed: place = (number - m_low) / (m_high - m_low); break;
    }
    return std::clamp(place, 0.0, 1.0);
}

std::string MapScale::name() const {
    switch (m_kind) {
    case Kind::Logarithmic: return fmt::format("log10, floor 1e\u2212{:.0f}", -m_low);
    case Kind::Linear: return "linear";
    case Kind::Row: return "each row by its largest";
    case Kind::Rank: return "rank of the cell";
    case Kind::Signed: break;
    }
    return "signed, centred at 0";
}

std::vector<Tick> MapScale::ticks() const {
    std::vector<Tick> ticks;
    if (m_kind == Kind::Logarithmic) {
        for (double exponent = std::ceil(m_low); exponent <= 0; ++exponent) {
            const std::string label = exponent == 0 ? "1" : fmt::format("1e\u2212{:.0f}", -exponent);
            ticks.push_back({(exponent - m_low) / -m_low, exponent == std::ceil(m_low) ? "\u2264" + label : label});
        }
        return ticks;
    }
    for (Tick tick : linearTicks(m_low, m_high, 6)) {
        tick.value = (tick.value - m_low) / (m_high - m_low);
        ticks.push_back(std::move(tick));
    }
    return ticks;
}

ColourColumnSpec MapScale::column() const {
    ColourColumnSpec spec{m_map, m_inverted, ticks(), std::vector<double>(kBins, 0.0)};
    const std::int64_t width = m_data.cells.shape[1];
    for (std::size_t i = 0; i < m_data.cells.data.size(); ++i) {
        const float cell = m_data.cells.data[i];
        if (std::isnan(cell))
            continue;
        const double at = place(cell, static_cast<std::int64_t>(i) / width);
        spec.histogram[std::min(kBins - 1, static_cast<std::size_t>(at * static_cast<double>(kBins)))] += 1;
    }
    return spec;
}

} // namespace kvscope
