// The kernel matrix of a walk: what each pair's sign weighs for every other pair. Signed, so blue against red.
#include "views/scene/axes.h"
#include "views/walk/walk_painter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace kvscope {

namespace {

ImageItem imageOf(const WalkData::Walk& walk, const Box& box, const KernelScale& scale) {
    auto pixels = std::make_shared<std::vector<std::uint8_t>>();
    pixels->reserve(walk.kernel.size() * 4);
    for (const float entry : walk.kernel) {
        const Colour c = scale.colourOf(static_cast<double>(entry));
        pixels->insert(pixels->end(), {c.r, c.g, c.b, 255});
    }
    const int side = static_cast<int>(walk.side);
    return {box, side, side, std::move(pixels), {PickId::Kind::Cell, 0}};
}

/// Signs so far along the top: filled +, hollow -.
void paintSignRail(SceneBuilder& b, const WalkPicture& p, const Box& map) {
    const double slot = map.width / static_cast<double>(p.now.size());
    for (std::int64_t step = 0; step < p.now.steps; ++step) {
        const std::int8_t sign = p.now.walk->log->signs[static_cast<std::size_t>(step)];
        if (sign != 0)
            b.rectangle(
                {map.x + slot * static_cast<double>(step), map.y - (sign > 0 ? 15 : 8), std::max(0.8, slot * 0.9), 6},
                sign > 0 ? p.theme.text1 : p.theme.control);
    }
}

double largestEntry(const WalkData::Walk& walk) {
    double largest = 0;
    for (const float entry : walk.kernel) largest = std::max(largest, std::abs(static_cast<double>(entry)));
    return largest;
}

} // namespace

KernelScale::KernelScale(const WalkData::Walk& walk, const ParameterValues& options)
    : ColourScale(options.choice("scale") == "root" ? Kind::SignedRoot : Kind::Signed, "kernel", "cells", {}, false),
      m_walk(walk) {
    const double end = levelOfValue(walk.range > 0 ? walk.range : 1),
                 more = std::clamp(levelOfValue(largestEntry(walk)) - end, 0.0, end);
    setEnds(-end, end);
    stretchColumn(more, more); // towards the diagonal, which is far larger than the rest
    choose(ValueRange::parse(options.text(kValueRangeOption)));
}

void KernelScale::visitLevels(const VisitLevels& visit) const {
    std::vector<double> levels;
    for (const float entry : m_walk.kernel) levels.push_back(levelOfValue(static_cast<double>(entry)));
    visit(levels);
}

void paintKernel(SceneBuilder& b, const WalkPicture& p, const KernelScale& scale) {
    const double left = 52, bottom = p.viewport.forExport ? 56 : 40,
                 column = p.viewport.width >= 320 ? kLabelledColumnWidth + 14 : 12;
    const double side =
        std::max(40.0, std::min(p.viewport.width - left - column, p.viewport.height - p.top - 16 - bottom));
    const Box map{left, p.top + 16, side, side};
    const TextStyle label{FontFace::Monospace, 10}, title{FontFace::Interface, 11};
    b.scene().items.push_back(imageOf(*p.now.walk, map, scale));
    b.rectangle(map, kTransparent, {p.theme.axis, 1, {}});
    paintSignRail(b, p, map);
    const auto size = static_cast<double>(p.now.size());
    for (const Tick& tick : linearTicks(0, size, std::clamp(static_cast<int>(side / 48), 2, 7))) {
        const double offset = tick.value / size * side;
        b.line({map.x + offset, map.bottom()}, {map.x + offset, map.bottom() + 4}, {p.theme.axis, 1, {}});
        b.text({map.x + offset, map.bottom() + 7}, tick.label, label, p.theme.text3, HorizontalAlign::Centre,
               VerticalAlign::Top);
        b.line({map.x - 4, map.y + offset}, {map.x, map.y + offset}, {p.theme.axis, 1, {}});
        b.label({map.x - 7, map.y + offset}, tick.label, label, p.theme.text3, HorizontalAlign::Right);
    }
    const std::string words = fmt::format("M of {}, pairs (0-based)", walkName(p.data, *p.now.walk->log));
    b.text({map.x, map.bottom() + 21}, b.elide(words, title, p.viewport.width - map.x - 8), title, p.theme.text2,
           HorizontalAlign::Left, VerticalAlign::Top);
    if (p.now.steps > 0 && p.now.steps < p.now.size()) { // the current pair
        const double offset = (static_cast<double>(p.now.steps) - 0.5) / size * side;
        b.line({map.x, map.y + offset}, {map.right(), map.y + offset}, {p.theme.ink, 1, {}});
        b.line({map.x + offset, map.y}, {map.x + offset, map.bottom()}, {p.theme.ink, 1, {}});
    }
    if (p.viewport.width >= 320) {
        drawColourColumn(b, {map.right() + 12, map.y, kLabelledColumnWidth, map.height}, scale.column(), p.theme);
    }
    Scene& scene = b.scene();
    scene.plot = map;
    scene.xMin = 0, scene.xMax = size, scene.yMin = 0, scene.yMax = size;
    scene.yDown = true;
}

} // namespace kvscope
