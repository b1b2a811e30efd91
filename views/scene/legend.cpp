// Legends: marks with their labels in rows. A row is filled before the next one begins, so a legend of whole labels has
// as few rows as there can be.
#include "views/scene/axes.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace kvscope {

namespace {

constexpr double kGap = 14, kMarkGap = 5, kLeastLabel = 64, kLeastCut = 24;
const TextStyle kStyle{FontFace::Interface, 11};

void drawLegendMark(SceneBuilder& builder, const LegendEntry& entry, Point at) {
    if (entry.bar && entry.stroke.colour.a > 0) {
        builder.polyline({{at.x - 8, at.y}, {at.x + 8, at.y}}, entry.stroke);
        if (entry.fill.a > 0 || entry.outline.colour.a > 0)
            builder.mark(at, entry.marker, entry.radius, entry.fill, entry.outline);
    } else if (entry.bar) {
        builder.rectangle({at.x - 8, at.y - 1.3, 16, 2.6}, entry.fill);
    } else {
        builder.mark(at, entry.marker, entry.radius, entry.fill, entry.stroke);
    }
}

/// Width of the mark and the gap after it: all of an entry but its label.
double frameOf(const LegendEntry& entry) { return (entry.bar ? 16 : 12) + kMarkGap; }

/// Entries with the widths of their labels, packed into rows of `width` with labels cut at `longest`.
struct Packing {
    const std::vector<LegendEntry>& entries;
    std::vector<double> labels;
    double width = 0;

    Packing(const std::vector<LegendEntry>& all, double room, const TextService& text) : entries(all), width(room) {
        for (const LegendEntry& entry : all) labels.push_back(text.measure(entry.label, kStyle).width);
    }
    double widthOf(std::size_t i, double longest) const { return frameOf(entries[i]) + std::min(labels[i], longest); }

    /// One past the last entry of every row, for the first `count` entries.
    std::vector<std::size_t> rows(std::size_t count, double longest) const {
        std::vector<std::size_t> ends;
        double x = 0;
        for (std::size_t i = 0; i < count; ++i) {
            const double own = widthOf(i, longest);
            if (ends.empty() || x + kGap + own > width + 0.01)
                ends.push_back(i), x = own;
            else
                x += kGap + own;
            ends.back() = i + 1;
        }
        return ends;
    }

    /// The longest label length with which the first `count` entries fit into so many rows; negative: none.
    double longestFor(std::size_t count, std::size_t most) const {
        constexpr double kWhole = std::numeric_limits<double>::infinity();
        if (fits(count, most, kWhole)) return kWhole;
        for (double longest = std::floor(width); longest >= 0; longest -= 1)
            if (fits(count, most, longest)) return longest;
        return -1;
    }

private:
    bool fits(std::size_t count, std::size_t most, double longest) const {
        const auto ends = rows(count, longest);
        for (std::size_t i = 0; i < count; ++i)
            if (widthOf(i, longest) > width + 0.01) return false;
        return ends.size() <= most;
    }
};

} // namespace

LegendEntry markEntry(std::string label, Marker marker, Colour fill, double radius, Stroke stroke) {
    return {std::move(label), marker, fill, std::move(stroke), radius};
}

LegendEntry barEntry(std::string label, Colour fill) { return {std::move(label), Marker::Circle, fill, {}, 3, true}; }

LegendEntry areaEntry(std::string label, Colour fill) { return {std::move(label), Marker::Square, fill, {}, 4}; }

LegendEntry ringEntry(std::string label, Stroke stroke) {
    return {std::move(label), Marker::Circle, kTransparent, std::move(stroke)};
}

LegendEntry lineEntry(std::string label, Stroke stroke) {
    return {std::move(label), Marker::Circle, kTransparent, std::move(stroke), 3, true};
}

LegendEntry wordsEntry(std::string label) { return {std::move(label), Marker::Circle, kTransparent, {}, 0}; }

void setMark(LegendEntry& entry, Marker marker, double radius, Colour fill, Stroke outline) {
    entry.marker = marker;
    entry.radius = radius;
    entry.fill = fill;
    entry.outline = std::move(outline);
}

int legendRows(const std::vector<LegendEntry>& entries, double width, int most, const TextService& text) {
    const Packing packing(entries, width, text);
    for (int rows = 1; rows < most; ++rows) {
        const double longest = packing.longestFor(entries.size(), static_cast<std::size_t>(rows));
        if (std::isinf(longest) || (rows > 1 && longest >= kLeastLabel)) return rows;
    }
    return most;
}

bool isLegendWhole(const std::vector<LegendEntry>& entries, double width, int rows, const TextService& text) {
    return std::isinf(Packing(entries, width, text).longestFor(entries.size(), static_cast<std::size_t>(rows)));
}

double drawLegend(SceneBuilder& builder, Point leftMiddle, double width, const std::vector<LegendEntry>& entries,
                  const Theme& theme, int rows) {
    const Packing packing(entries, width, builder.textService());
    std::size_t count = entries.size();
    double longest = packing.longestFor(count, static_cast<std::size_t>(rows));
    while (longest < kLeastCut && count > 1) longest = packing.longestFor(--count, static_cast<std::size_t>(rows));
    double x = leftMiddle.x, right = x;
    std::size_t first = 0, row = 0;
    for (const std::size_t end : packing.rows(count, longest)) {
        const double y = leftMiddle.y + kLegendPitch * static_cast<double>(row++);
        x = leftMiddle.x;
        for (std::size_t i = first; i < end; ++i, x += kGap) {
            const double frame = frameOf(entries[i]);
            drawLegendMark(builder, entries[i], {x + (frame - kMarkGap) / 2, y});
            const std::string label =
                packing.labels[i] > longest ? builder.elide(entries[i].label, kStyle, longest) : entries[i].label;
            x += frame + builder.label({x + frame, y}, label, kStyle, theme.text2);
        }
        right = std::max(right, x);
        first = end;
    }
    return right;
}

double legendWidth(const std::vector<LegendEntry>& entries, double most, int rows, const TextService& text) {
    const Packing packing(entries, most, text);
    const double longest = packing.longestFor(entries.size(), static_cast<std::size_t>(rows));
    double widest = 0;
    std::size_t first = 0;
    for (const std::size_t end : packing.rows(entries.size(), longest)) {
        double x = -kGap;
        for (; first < end; ++first) x += kGap + packing.widthOf(first, longest);
        widest = std::max(widest, x);
    }
    return std::min(widest, most);
}

} // namespace kvscope
