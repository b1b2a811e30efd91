// The step cursor in plots over the stream: tokens to its left have been read, tokens to its right have not.
#include "views/common/step_cursor.h"

namespace kvscope {

namespace {

constexpr double kChipHeight = 18, kChipPad = 6;

void drawChip(SceneBuilder& builder, const PlotFrame& frame, const Theme& theme, double x, TokenIndex cursor) {
    const TextStyle style{FontFace::Monospace, 11, FontWeight::Bold};
    const std::string label = "j = " + formatCount(cursor);
    const double width = builder.width(label, style) + 2 * kChipPad;
    const double left = std::clamp(x - width / 2, frame.plot.x, std::max(frame.plot.x, frame.plot.right() - width));
    builder.rectangle({left, frame.plot.y, width, kChipHeight}, theme.ink, {}, 3);
    builder.label({left + width / 2, frame.plot.y + kChipHeight / 2}, label, style, theme.paper,
                  HorizontalAlign::Centre);
    const TextStyle plain{FontFace::Interface, 11};
    const std::string rest = "not read yet";
    if (left + width + 8 + builder.width(rest, plain) < frame.plot.right())
        builder.label({left + width + 8, frame.plot.y + kChipHeight / 2}, rest, plain, theme.text2);
}

} // namespace

void drawStepCursor(SceneBuilder& builder, const PlotFrame& frame, const Theme& theme, TokenIndex cursor) {
    const double x = frame.toPixels(cursor, 0).x;
    const Box& plot = frame.plot;
    if (x > plot.right()) return;
    const double left = std::max(x, plot.x);
    builder.rectangle({left, plot.y, plot.right() - left, plot.height}, withAlpha(theme.sunken, 0.85));
    if (x >= plot.x) builder.line({x, plot.y}, {x, plot.bottom()}, {theme.ink, 1.5, {}});
    drawChip(builder, frame, theme, left, cursor);
}

} // namespace kvscope
