// A map is read with its scale: which colour is which value, and how many cells have it.
#include "views/scene/colour_column.h"

#include <algorithm>
#include <memory>

namespace kvscope {

namespace {

constexpr double kBar = 10, kHistogram = 14, kTick = 4;

void drawBar(SceneBuilder& builder, const Box& bar, const ColourColumnSpec& spec, const Theme& theme) {
    auto pixels = std::make_shared<std::vector<std::uint8_t>>();
    for (int i = 255; i >= 0; --i) {
        const Colour c = colourMap(spec.map, i / 255.0, spec.inverted);
        pixels->insert(pixels->end(), {c.r, c.g, c.b, 255});
    }
    builder.scene().items.push_back(ImageItem{bar, 1, 256, pixels, {}});
    builder.rectangle(bar, kTransparent, {theme.axis, 1, {}});
}

} // namespace

void drawColourColumn(SceneBuilder& builder, const Box& box, const ColourColumnSpec& spec, const Theme& theme) {
    const Box bar{box.x + kHistogram, box.y, kBar, box.height};
    drawBar(builder, bar, spec, theme);
    // The lowest bin gathers what lies below the scale; it must not flatten the others.
    const double highest = spec.histogram.size() < 2 ? 0 : *std::max_element(spec.histogram.begin() + 1, spec.histogram.end());
    const double step = box.height / std::max<double>(1, static_cast<double>(spec.histogram.size()));
    for (std::size_t i = 0; highest > 0 && i < spec.histogram.size(); ++i) {
        const double width = (kHistogram - 2) * std::min(1.0, spec.histogram[i] / highest);
        builder.rectangle({bar.x - 1 - width, box.bottom() - step * static_cast<double>(i + 1), width, step}, theme.text3);
    }
    const TextStyle label{FontFace::Monospace, 10};
    for (const Tick& tick : spec.ticks) {
        const double y = bar.bottom() - tick.value * bar.height;
        builder.line({bar.right(), y}, {bar.right() + kTick, y}, {theme.axis, 1, {}});
        builder.text({bar.right() + kTick + 3, y}, tick.label, label, theme.text3, HorizontalAlign::Left,
                     VerticalAlign::Middle);
    }
}

} // namespace kvscope
