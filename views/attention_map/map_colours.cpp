// The colour scale: logarithmic by default, because attention spans many powers of ten; linear for the few large
// weights, by row where rows differ in sharpness, by rank where only the order matters.
#include "views/attention_map/map_colours.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

namespace kvscope {

namespace {

constexpr double kDecadesBeyond = 2;                                  // by which the column reaches beyond the colours
constexpr double kDarker = 0.01, kLighter = 0.005, kMostDecades = 10; // of endsOfWeights
constexpr std::int64_t kDeepest = 46; // decades: the smallest positive float is above 10^-46

float largestMagnitude(const std::vector<float>& cells) {
    float largest = 0;
    for (const float cell : cells) largest = std::isnan(cell) ? largest : std::max(largest, std::abs(cell));
    return largest;
}

/// The end of an axis that begins at 0.
double topOf(const std::vector<float>& cells) {
    const float largest = largestMagnitude(cells);
    return largest > 0 ? static_cast<double>(largest) : 1;
}

/// The 99th percentile of the magnitudes of the cells that are not 0; `top` where all are 0.
double mostOf(const std::vector<float>& cells, double top) {
    std::vector<float> sizes;
    for (const float cell : cells)
        if (std::abs(cell) > 0) sizes.push_back(std::abs(cell));
    if (sizes.empty()) return top;
    const auto most = sizes.begin() + static_cast<std::ptrdiff_t>((sizes.size() - 1) * 99 / 100);
    std::nth_element(sizes.begin(), most, sizes.end());
    return static_cast<double>(*most);
}

/// Steps of 1, 3, 10, 30 ...: the level (log10) at which a step begins, and the step in which a level lies.
double levelOfStep(std::int64_t step) {
    return std::floor(static_cast<double>(step) / 2) + (step % 2 ? std::log10(3.0) : 0);
}

std::int64_t stepOf(double level) {
    const double whole = std::floor(level);
    return 2 * static_cast<std::int64_t>(whole) + (level - whole >= std::log10(3.0) ? 1 : 0);
}

/// Smallest and largest cell. Logits have no natural ends, and most logits of a head lie on one side of 0.
std::pair<double, double> spanOf(const std::vector<float>& cells) {
    double low = std::numeric_limits<double>::infinity(), high = -low;
    for (const float cell : cells)
        if (std::isfinite(cell)) {
            low = std::min(low, static_cast<double>(cell));
            high = std::max(high, static_cast<double>(cell));
        }
    return low < high ? std::pair(low, high) : std::isfinite(low) ? std::pair(low - 1, low + 1) : std::pair(-1.0, 1.0);
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
    std::ranges::copy_if(cells.data, std::back_inserter(sorted), [](float c) { return !std::isnan(c); });
    std::ranges::sort(sorted);
    return sorted;
}

std::string keyOf(const ParameterValues& options) {
    std::string key;
    for (const char* option : {"scale", "floor", "colours", "invert", kValueRangeOption})
        key += options.text(option) + "|";
    return key;
}

std::string quantityOf(const AttentionMapData& data, const ParameterValues& options) {
    const std::string& scale = options.choice("scale");
    if (!data.isWeight) return data.valueName();
    if (scale == "row" || scale == "rank") return scale;
    // A softmax over other keys gives weights of another size: a range chosen for one map does not fit another.
    const std::string& map = options.choice("map");
    return map == "chunks" ? "chunk-weight" : map == "non_causal" ? "non-causal-weight" : "weight";
}

} // namespace

void checkMapRange(std::string_view text) {
    constexpr std::array<std::string_view, 8> known{"weight", "chunk-weight", "non-causal-weight", "row", "rank",
                                                    "logit",  "cosine",       "difference"};
    checkValueRange(text, known, "an attention map");
}

std::pair<double, double> endsOfWeights(const HostTensor& logs) {
    constexpr std::int64_t kLast = 2 * kDeepest + 1;
    std::array<std::int64_t, kLast + 1> counts{}; // of the steps from 10^-kDeepest on
    double all = 0;
    for (const float level : logs.data) {
        if (std::isnan(level)) continue;
        const double seen = std::max<double>(level, -kDeepest); // the level of a weight of 0 is minus infinity
        ++counts[static_cast<std::size_t>(std::min(stepOf(seen) + 2 * kDeepest, kLast))];
        ++all;
    }
    if (all == 0) return {-4, 0};
    std::int64_t lowest = 0, highest = kLast;
    for (std::int64_t beyond = counts[lowest]; static_cast<double>(beyond) <= kDarker * all;)
        beyond += counts[++lowest];
    for (std::int64_t beyond = counts[highest]; static_cast<double>(beyond) <= kLighter * all;)
        beyond += counts[--highest];
    const double high = std::min(0.0, levelOfStep(highest + 1 - 2 * kDeepest)),
                 low = levelOfStep(lowest - 2 * kDeepest);
    return {std::min(std::max(low, high - kMostDecades), high - 1), high};
}

std::shared_ptr<const MapScale> scaleOfMap(const AttentionMapData& data, const ParameterValues& options) {
    const char* thing = options.isDefault(kValueRangeOption) ? "automatic scale" : "scale";
    return data.memo.get(thing, keyOf(options), [&] { return std::make_shared<const MapScale>(data, options); });
}

MapScale::Look MapScale::lookOf(const AttentionMapData& data, const ParameterValues& options) {
    const std::string& scale = options.choice("scale");
    return !data.isWeight      ? data.isDifference  ? Look::SignedRoot
                                 : data.rowsAreKeys ? Look::Signed
                                                    : Look::Span
           : scale == "log"    ? Look::Logarithmic
           : scale == "linear" ? Look::Linear
           : scale == "row"    ? Look::Row
                               : Look::Rank;
}

MapScale::MapScale(const AttentionMapData& data, const ParameterValues& options)
    : MapScale(data, options, lookOf(data, options)) {}

MapScale::MapScale(const AttentionMapData& data, const ParameterValues& options, Look look)
    : ColourScale(look == Look::Signed        ? Kind::Signed
                  : look == Look::SignedRoot  ? Kind::SignedRoot
                  : look == Look::Logarithmic ? Kind::Logarithmic
                                              : Kind::Linear,
                  quantityOf(data, options), "cells", options.choice("colours"), options.flag("invert")),
      m_data(data), m_key(keyOf(options)), m_look(look) {
    switch (look) {
    case Look::Logarithmic: {
        auto [low, high] = data.logEnds;
        if (const auto floor = static_cast<double>(options.integer("floor")); floor < 0) {
            low = floor;
            if (high <= low) high = 0;
        }
        setEnds(low, high);
        stretchColumn(kDecadesBeyond, std::min(kDecadesBeyond, -high));
        break;
    }
    case Look::Linear: setEnds(0, topOf(data.cells.data)); break;
    case Look::Row:
        setEnds(0, 1);
        m_rowTops = topsOfRows(data.cells);
        break;
    case Look::Rank:
        setEnds(0, 1);
        m_sorted = sortedCells(data.cells);
        break;
    case Look::Signed: setEnds(-topOf(data.cells.data), topOf(data.cells.data)); break;
    case Look::SignedRoot: {
        const double top = std::sqrt(topOf(data.cells.data)),
                     most = std::sqrt(mostOf(data.cells.data, topOf(data.cells.data)));
        setEnds(-most, most);
        stretchColumn(std::min(top - most, most),
                      std::min(top - most, most)); // up to four times the value, for dragging the upper end
        break;
    }
    case Look::Span: {
        const auto [low, high] = spanOf(data.cells.data);
        setEnds(low, high);
        break;
    }
    }
    choose(ValueRange::parse(options.text(kValueRangeOption)));
}

double MapScale::level(float value, std::int64_t row) const {
    const auto number = static_cast<double>(value);
    switch (m_look) {
    case Look::Logarithmic: return number > 0 ? std::log10(number) : -std::numeric_limits<double>::infinity();
    case Look::Row: {
        const auto top = static_cast<double>(m_rowTops[row]);
        return top > 0 ? number / top : 0;
    }
    case Look::Rank: {
        const auto below = std::ranges::lower_bound(m_sorted, value) - m_sorted.begin();
        return m_sorted.size() > 1 ? static_cast<double>(below) / static_cast<double>(m_sorted.size() - 1) : 1;
    }
    case Look::SignedRoot: return levelOfValue(number);
    case Look::Linear:
    case Look::Span:
    case Look::Signed: break;
    }
    return number;
}

void MapScale::visitLevels(const VisitLevels& visit) const {
    const std::int64_t height = m_data.cells.shape[0], width = m_data.cells.shape[1];
    std::vector<double> levels(static_cast<std::size_t>(width));
    for (std::int64_t row = 0; row < height; ++row) {
        std::size_t count = 0;
        for (std::int64_t i = row * width; i < (row + 1) * width; ++i)
            if (!std::isnan(m_data.cells.data[i])) levels[count++] = levelOfCell(row, i);
        visit(std::span(levels).first(count));
    }
}

std::string MapScale::name() const {
    const ValueRange now = range();
    const bool says = isChosen() || m_look == Look::Logarithmic;
    const std::string ends = says ? fmt::format(", {} to {}", formatBound(*now.low), formatBound(*now.high)) : "";
    switch (m_look) {
    case Look::Logarithmic: return "log10" + ends;
    case Look::Linear: return "linear" + ends;
    case Look::Row: return "each row by its largest" + ends;
    case Look::Rank: return "rank of the cell" + ends;
    case Look::SignedRoot:
        return isChosen() ? "signed root, centred at 0" + ends : "signed root, to the 99th percentile";
    case Look::Span: return isChosen() ? "linear" + ends : "linear, smallest to largest";
    case Look::Signed: break;
    }
    return "signed, centred at 0" + ends;
}

} // namespace kvscope
