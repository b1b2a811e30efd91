// A map is read with its scale: which colour is which value, how many cells have it, and where the colours end.
#include "views/scene/colour_column.h"

#include <algorithm>
#include <cmath>

namespace kvscope {

namespace {

constexpr double kBar = 10, kHistogram = 14, kTick = 4, kLabelPitch = 12;
const TextStyle kNote{FontFace::Interface, 10};

void drawBar(SceneBuilder& builder, const Box& bar, const ColourColumnSpec& spec, const Theme& theme) {
    std::vector<Colour> pixels;
    const double span = std::max(spec.high - spec.low, 1e-9);
    for (int i = 255; i >= 0; --i) pixels.push_back(colourMap(spec.map, (i / 255.0 - spec.low) / span, spec.inverted));
    builder.image(bar, 1, 256, pixels);
    builder.rectangle(bar, kTransparent, {theme.axis, 1, {}}, 0, kColourColumn);
}

void drawHistogram(SceneBuilder& builder, const Box& bar, const ColourColumnSpec& spec, const Theme& theme) {
    // The lowest bin also holds values below the scale and must not flatten the others.
    const double highest =
        spec.histogram.size() < 2 ? 0 : *std::max_element(spec.histogram.begin() + 1, spec.histogram.end());
    const double step = bar.height / std::max<double>(1, static_cast<double>(spec.histogram.size()));
    for (std::size_t i = 0; highest > 0 && i < spec.histogram.size(); ++i) {
        const double width = (kHistogram - 2) * std::min(1.0, spec.histogram[i] / highest);
        if (width > 0)
            builder.rectangle({bar.x - 1 - width, bar.bottom() - step * static_cast<double>(i + 1), width, step},
                              theme.text2);
    }
}

void drawLabel(SceneBuilder& builder, const Box& bar, const Tick& tick, Colour colour, const Theme& theme) {
    const double y = bar.bottom() - tick.value * bar.height;
    builder.line({bar.right(), y}, {bar.right() + kTick, y}, {theme.axis, 1, {}});
    builder.label({bar.right() + kTick + 3, y}, tick.label, {FontFace::Monospace, 10}, colour);
}

/// The labels of the two ends, moved apart where they would touch.
std::vector<Tick> endLabels(const Box& bar, const ColourColumnSpec& spec) {
    std::vector<Tick> ends;
    if (!spec.lowLabel.empty()) ends.push_back({spec.low, spec.lowLabel});
    if (!spec.highLabel.empty()) ends.push_back({spec.high, spec.highLabel});
    const double pitch = kLabelPitch / bar.height;
    if (ends.size() == 2 && ends[1].value - ends[0].value < pitch) {
        const double middle = std::clamp((ends[0].value + ends[1].value) / 2, pitch / 2, 1 - pitch / 2);
        ends[0].value = middle - pitch / 2;
        ends[1].value = middle + pitch / 2;
    }
    return ends;
}

} // namespace

void drawColourColumn(SceneBuilder& builder, const Box& box, const ColourColumnSpec& spec, const Theme& theme) {
    const Box bar{box.x + kHistogram, box.y, kBar, box.height};
    drawBar(builder, bar, spec, theme);
    drawHistogram(builder, bar, spec, theme);
    const std::vector<Tick> ends = endLabels(bar, spec);
    for (const Tick& end : ends) drawLabel(builder, bar, end, theme.text1, theme);
    std::vector<Tick> labelled = ends;
    const auto isFree = [&](const Tick& tick) {
        return std::ranges::none_of(labelled, [&](const Tick& other) {
            return std::abs(other.value - tick.value) * bar.height < 0.99 * kLabelPitch;
        });
    };
    const double row = kLabelPitch / bar.height;
    for (const Tick& note : {Tick{spec.low - row, spec.lowNote}, Tick{spec.high + row, spec.highNote}}) {
        if (note.label.empty() || note.value < 0 || note.value > 1 || !isFree(note)) continue;
        builder.label({bar.right() + kTick + 3, bar.bottom() - note.value * bar.height}, note.label, kNote,
                      theme.text2);
        labelled.push_back(note);
    }
    for (const Tick& tick : spec.ticks) {
        if (!isFree(tick)) continue;
        drawLabel(builder, bar, tick, theme.text2, theme);
        labelled.push_back(tick);
    }
}

std::optional<double> placeOnColumn(const Scene& scene, Point at) {
    const std::optional<Box> bar = boxOfPick(scene, kColourColumn);
    return bar && bar->height > 0 ? std::optional((bar->bottom() - at.y) / bar->height) : std::nullopt;
}

} // namespace kvscope
