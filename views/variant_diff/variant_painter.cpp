// One row per variant: what it is called and costs, where along the prompt it differs, why, and in which tokens.
#include "core/metrics/fidelity.h"
#include "views/scene/axes.h"
#include "views/variant_diff/variant_facts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>

namespace kvscope {

namespace {

constexpr double kTop = 26, kLine = 15, kAxis = 34;
constexpr std::size_t kMostTokensNamed = 60;

/// The tokens of a list as runs of whole pixels on a rail.
void drawTokens(SceneBuilder& builder, const Box& rail, const std::vector<TokenIndex>& tokens, std::int64_t visible, Colour colour) {
    const double perToken = rail.width / static_cast<double>(visible);
    for (std::size_t i = 0; i < tokens.size();) {
        std::size_t end = i + 1; // one past the run of tokens that touch on the screen
        while (end < tokens.size() && (tokens[end] - tokens[end - 1] - 1) * perToken < 0.5)
            ++end;
        const double left = std::floor(rail.x + perToken * tokens[i]), right = std::ceil(rail.x + perToken * (tokens[end - 1] + 1));
        builder.rectangle({left, rail.y, right - left, rail.height}, colour);
        i = end;
    }
}

std::string headingOf(const VariantList& list, const ListChange& change, bool isReference) {
    if (!list.error.empty())
        return list.error;
    std::string text = formatCount(std::ssize(list.kept)) + " kept";
    if (!std::isnan(list.outputError))
        text += ", error " + formatFixed(list.outputError, 3);
    if (isReference)
        return text + ", the reference";
    return text + (change.count() == 0 ? ", the same tokens"
                                       : fmt::format(", {} in, {} out, Jaccard {}", formatCount(std::ssize(change.gained)),
                                                     formatCount(std::ssize(change.lost)), formatFixed(change.jaccard, 2)));
}

void drawScale(SceneBuilder& builder, const Box& plot, std::int64_t visible, const Theme& theme) {
    const double y = plot.bottom() + 2;
    builder.line({plot.x, y}, {plot.right(), y}, {theme.axis, 1, {}});
    for (const Tick& tick : positionTicks(0, visible, plot.width < 360 ? 5 : 9)) {
        const double x = plot.x + plot.width * tick.value / static_cast<double>(visible);
        builder.line({x, y}, {x, y + 4}, {theme.axis, 1, {}});
        builder.text({x, y + 15}, tick.label, {FontFace::Monospace, 10}, theme.text3, HorizontalAlign::Centre);
    }
}

} // namespace

ListChange changeOf(const VariantDiffData& data, std::size_t list) {
    const std::vector<TokenIndex> &there = data.lists.front().kept, &here = data.lists[list].kept;
    ListChange change;
    std::set_difference(here.begin(), here.end(), there.begin(), there.end(), std::back_inserter(change.gained));
    std::set_difference(there.begin(), there.end(), here.begin(), here.end(), std::back_inserter(change.lost));
    change.jaccard = jaccard(here, there);
    return change;
}

std::string causesText(const VariantList& list) {
    std::vector<VariantCause> causes = list.causes;
    std::stable_sort(causes.begin(), causes.end(), [](const VariantCause& a, const VariantCause& b) { return a.alone > b.alone; });
    std::string text;
    for (const VariantCause& cause : causes) {
        text += fmt::format("{}{} {} → {}", text.empty() ? "" : " · ", cause.label, cause.from, cause.to);
        if (!cause.traps.empty())
            text += fmt::format(" ({})", fmt::join(cause.traps, ", "));
        if (cause.alone >= 0)
            text += fmt::format(", {} alone", formatCount(cause.alone));
    }
    return text;
}

std::string changedTokensText(const ViewInput& input, const ListChange& change) {
    const TokenTable& tokens = input.capture->tokens();
    std::vector<TokenIndex> all;
    std::merge(change.gained.begin(), change.gained.end(), change.lost.begin(), change.lost.end(), std::back_inserter(all));
    std::string text;
    for (std::size_t i = 0; i < std::min(all.size(), kMostTokensNamed); ++i) {
        const bool gained = std::binary_search(change.gained.begin(), change.gained.end(), all[i]);
        text += fmt::format("{}{}{} “{}”", text.empty() ? "" : "  ", gained ? "+" : "−", all[i], displayText(tokens.textOf(all[i])));
    }
    return text;
}

VariantLayout variantLayoutOf(const VariantDiffData& data, const Viewport& viewport) {
    VariantLayout layout;
    const double foot = kAxis + (viewport.forExport ? 18 : 0);
    layout.plot = {14, kTop, viewport.width - 28, viewport.height - kTop - foot};
    layout.pitch = std::min(92.0, layout.plot.height / static_cast<double>(std::max<std::size_t>(1, data.variants)));
    layout.plot.height = layout.pitch * static_cast<double>(data.variants);
    layout.tokens = layout.pitch >= 66;
    layout.causes = layout.pitch >= 50;
    layout.heading = layout.pitch >= 32;
    layout.railHeight = std::clamp(layout.pitch - 10 - (layout.heading ? kLine + 4 : 0) - (layout.causes ? kLine : 0) - (layout.tokens ? kLine : 0), 4.0, 14.0);
    return layout;
}

void drawVariantLists(SceneBuilder& builder, const VariantLayout& layout, const VariantDiffData& data,
                      const ViewInput& input, const Theme& theme) {
    const TextStyle title{FontFace::Interface, 12, FontWeight::SemiBold}, text{FontFace::Interface, 11};
    for (std::size_t i = 0; i < data.lists.size(); ++i) {
        const VariantList& list = data.lists[i];
        const ListChange change = list.error.empty() ? changeOf(data, i) : ListChange{};
        const Box rail = layout.rail(i);
        if (layout.heading) {
            const std::string label = builder.elide(list.label, title, 0.4 * rail.width);
            const double width = builder.text({rail.x, rail.y - 7}, label, title, theme.text1);
            builder.text({rail.x + width + 10, rail.y - 7}, builder.elide(headingOf(list, change, i == 0), text, rail.width - width - 10), text,
                         theme.text2);
        }
        builder.rectangle(rail, theme.sunken, {}, 0, {PickId::Kind::Cell, static_cast<std::int64_t>(i)});
        if (list.error.empty()) {
            drawTokens(builder, rail, list.kept, data.visible, withAlpha(theme.kept, i == 0 ? 0.9 : 0.4));
            drawTokens(builder, rail, change.gained, data.visible, theme.kept);
            drawTokens(builder, rail, change.lost, data.visible, theme.evicted);
        }
        if (layout.causes)
            builder.text({rail.x, rail.bottom() + kLine - 2}, builder.elide(i == 0 ? list.summary : causesText(list), text, rail.width), text, theme.text2);
        if (layout.tokens)
            builder.text({rail.x, rail.bottom() + 2 * kLine - 2}, builder.elide(changedTokensText(input, change), text, rail.width), text, theme.text3);
    }
    drawScale(builder, layout.plot, data.visible, theme);
}

} // namespace kvscope
