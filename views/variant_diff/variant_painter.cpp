// One row per variant: name and error, differing places along the prompt, causes, tokens.
#include "views/scene/axes.h"
#include "views/variant_diff/variant_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

namespace kvscope {

namespace {

/// Tokens of a list as runs of whole pixels on a rail. Touching runs are merged, so that no edge is antialiased twice.
void drawTokens(SceneBuilder& builder, const Box& rail, const std::vector<TokenIndex>& tokens, std::int64_t visible,
                Colour colour) {
    const double perToken = rail.width / static_cast<double>(visible);
    const auto leftOf = [&](TokenIndex token) { return std::floor(rail.x + perToken * token); };
    const auto rightOf = [&](TokenIndex token) { return std::ceil(rail.x + perToken * (token + 1)); };
    for (std::size_t i = 0; i < tokens.size();) {
        std::size_t end = i + 1; // one past the run
        while (end < tokens.size() && leftOf(tokens[end]) <= rightOf(tokens[end - 1])) ++end;
        const double left = leftOf(tokens[i]);
        builder.rectangle({left, rail.y, rightOf(tokens[end - 1]) - left, rail.height}, colour);
        i = end;
    }
}

std::string headingOf(const VariantList& list, const ListChange& change, bool isReference) {
    if (!list.error.empty()) return list.error;
    std::string text = formatCount(std::ssize(list.kept)) + " kept";
    if (!std::isnan(list.outputError)) text += ", error " + formatFixed(list.outputError, 3);
    if (isReference) return text + ", the reference";
    return text + (change.count() == 0
                       ? ", the same tokens"
                       : fmt::format(", {} in, {} out, Jaccard {}", formatCount(std::ssize(change.gained)),
                                     formatCount(std::ssize(change.lost)), formatFixed(change.jaccard, 2)));
}

void drawScale(SceneBuilder& builder, const VariantLayout& layout, std::int64_t visible, const Theme& theme) {
    const Box& plot = layout.plot;
    const double y = plot.bottom() + 2;
    builder.line({plot.x, y}, {plot.right(), y}, {theme.axis, 1, {}});
    for (const Tick& tick : positionTicks(0, visible, plot.width < 360 ? 5 : 9)) {
        const double x = plot.x + plot.width * tick.value / static_cast<double>(visible);
        builder.line({x, y}, {x, y + 4}, {theme.axis, 1, {}});
        if (layout.tickLabels)
            builder.text({x, y + 15}, tick.label, {FontFace::Monospace, 10}, theme.text2, HorizontalAlign::Centre);
    }
    if (layout.axisTitle)
        builder.text({plot.x + plot.width / 2, y + 29}, "Token position (0-based)", kVariantText, theme.text2,
                     HorizontalAlign::Centre);
}

void drawName(SceneBuilder& builder, const VariantLayout& layout, const VariantList& list, const ListChange& change,
              bool isReference, const Box& rail, const Theme& theme) {
    if (layout.names > 0) {
        builder.label({rail.x - layout.names, rail.y + rail.height / 2},
                      builder.elide(list.label, kVariantTitle, layout.names - 8), kVariantTitle, theme.text1);
        return;
    }
    const std::string label = builder.elide(list.label, kVariantTitle, 0.4 * rail.width);
    const double width = builder.text({rail.x, rail.y - 7}, label, kVariantTitle, theme.text1);
    builder.text({rail.x + width + 10, rail.y - 7},
                 builder.elide(headingOf(list, change, isReference), kVariantText, rail.width - width - 10),
                 kVariantText, theme.text2);
}

} // namespace

Colour keptByBothColour(const Theme& theme) {
    return blend(withAlpha(theme.kept, theme.id == ThemeId::Dark ? 0.55 : 0.4), theme.canvas);
}

void drawVariantLists(SceneBuilder& builder, const VariantLayout& layout, const VariantDiffData& data,
                      const Theme& theme) {
    for (std::size_t i = 0; i < std::min(data.lists.size(), layout.rows.size()); ++i) {
        const VariantList& list = data.lists[i];
        const ListChange change = list.error.empty() ? changeOf(data, i) : ListChange{};
        const VariantRow& row = layout.rows[i];
        const Box& rail = row.rail;
        drawName(builder, layout, list, change, i == 0, rail, theme);
        builder.rectangle(rail, theme.sunken, {}, 0, {PickId::Kind::Cell, static_cast<std::int64_t>(i)});
        if (list.error.empty()) {
            drawTokens(builder, rail, list.kept, data.visible, i == 0 ? theme.text2 : keptByBothColour(theme));
            drawTokens(builder, rail, change.gained, data.visible, theme.kept);
            drawTokens(builder, rail, change.lost, data.visible, theme.evicted);
        }
        double y = rail.bottom() + kVariantLine - 2;
        for (const auto& [lines, colour] : {std::pair{&row.why, theme.text2}, {&row.tokens, theme.text3}})
            for (const std::string& line : *lines) {
                builder.text({rail.x, y}, line, kVariantText, colour);
                y += kVariantLine;
            }
    }
    if (layout.notShown > 0)
        builder.label({layout.plot.x - layout.names, layout.plot.bottom() - 7},
                      builder.elide(fmt::format("{} more in a higher pane", layout.notShown), kVariantText,
                                    layout.names + layout.plot.width),
                      kVariantText, theme.text2);
    drawScale(builder, layout, data.visible, theme);
}

} // namespace kvscope
