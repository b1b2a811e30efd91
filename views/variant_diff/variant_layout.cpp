// Texts and height of a row per variant: everything where there is room; names and rails always.
#include "core/metrics/fidelity.h"
#include "views/scene/axes.h"
#include "views/variant_diff/variant_facts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

namespace kvscope {

namespace {

constexpr double kHeading = 19, kRail = 14, kGap = 10, kMostGap = 26;
constexpr double kTickRow = 20, kTitleRow = 14, kTitleHeight = 150; ///< below that height the axis has no title
constexpr double kLeastPitch = 12, kMostPitch = 30;                 ///< of rows with their names beside them
constexpr std::size_t kMostTokensNamed = 16, kMostTokenLines = 3;

constexpr const char* kBetween = " · ";

/// One text per cause, the strongest first; the first text explains the numbers.
std::vector<std::string> causeTexts(const VariantList& list) {
    std::vector<VariantCause> causes = list.causes;
    std::ranges::stable_sort(causes, std::greater<>(), &VariantCause::alone);
    std::vector<std::string> texts;
    for (const VariantCause& cause : causes) {
        texts.push_back(cause.change());
        if (!cause.traps.empty()) texts.back() += fmt::format(" ({})", fmt::join(cause.traps, ", "));
        if (cause.alone < 0) continue;
        const bool first = texts.size() == 1, none = cause.alone == 0;
        texts.back() += first ? "; on its own it changes " : "; on its own ";
        texts.back() += none ? (first ? "no" : "none") : formatCount(cause.alone);
        if (first) texts.back() += none || cause.alone == 1 ? " token" : " tokens";
    }
    return texts;
}

/// Causes in lines, each cause in one piece; what does not fit into `most` lines is counted at the end of the last.
std::vector<std::string> inLines(const SceneBuilder& builder, const std::vector<std::string>& texts, double width,
                                 std::size_t most) {
    std::vector<std::string> lines;
    for (std::size_t i = 0; i < texts.size() && most > 0; ++i) {
        const std::string longer = lines.empty() ? texts[i] : lines.back() + kBetween + texts[i];
        const std::size_t left = texts.size() - i - 1;
        const std::string rest = left > 0 && lines.size() == most ? fmt::format("{}… {} more", kBetween, left) : "";
        if (!lines.empty() && builder.width(longer + rest, kVariantText) <= width) {
            lines.back() = longer;
        } else if (lines.size() < most) {
            lines.push_back(builder.elide(texts[i], kVariantText, width));
        } else {
            const std::string more = fmt::format("{}… {} more", kBetween, left + 1);
            lines.back() = builder.elide(lines.back(), kVariantText, width - builder.width(more, kVariantText)) + more;
            break;
        }
    }
    return lines;
}

/// How many lines of each kind a row may have.
struct Allowance {
    std::size_t causes = 99, tokens = kMostTokenLines;
    double rail = kRail;
};

VariantRow rowOf(const SceneBuilder& builder, const VariantDiffData& data, const ViewInput& input, std::size_t i,
                 double width, const Allowance& allowed) {
    VariantRow row;
    row.rail = {0, 0, width, allowed.rail};
    if (i >= data.lists.size() || !data.lists[i].error.empty()) return row;
    const VariantList& list = data.lists[i];
    if (i == 0 && allowed.causes > 0)
        row.why = builder.wrap(list.summary, kVariantText, width);
    else if (i > 0)
        row.why = inLines(builder, causeTexts(list), width, allowed.causes);
    row.why.resize(std::min(row.why.size(), allowed.causes));
    if (allowed.tokens > 0 && i > 0)
        row.tokens = builder.wrap(changedTokensText(input, changeOf(data, i)), kVariantText, width);
    if (row.tokens.size() > allowed.tokens) {
        row.tokens.resize(allowed.tokens);
        row.tokens.back() = builder.elide(row.tokens.back() + " …", kVariantText, width);
    }
    return row;
}

/// From everything down to a heading and its rail.
std::vector<Allowance> allowances() {
    std::vector<Allowance> all;
    for (std::size_t tokens = kMostTokenLines + 1; tokens-- > 0;) all.push_back({99, tokens, kRail});
    for (std::size_t causes = 8; causes-- > 0;) all.push_back({causes, 0, causes > 0 ? kRail : 8});
    return all;
}

/// Names above their rails; false where the height does not allow it.
bool namesAbove(VariantLayout& layout, const SceneBuilder& builder, const VariantDiffData& data,
                const ViewInput& input) {
    double gap = 0;
    for (const Allowance& allowed : allowances()) {
        layout.rows.clear();
        double needed = 0;
        for (std::size_t i = 0; i < data.variants; ++i) {
            layout.rows.push_back(rowOf(builder, data, input, i, layout.plot.width, allowed));
            const VariantRow& row = layout.rows.back();
            needed +=
                kHeading + row.rail.height + kVariantLine * static_cast<double>(row.why.size() + row.tokens.size());
        }
        gap = (layout.plot.height - needed) / static_cast<double>(std::max<std::size_t>(1, data.variants));
        if (gap >= kGap) break;
    }
    if (gap < kGap) return false;
    gap = std::min(gap, kMostGap);
    double y = layout.plot.y;
    for (VariantRow& row : layout.rows) {
        row.rail.x = layout.plot.x;
        row.rail.y = y + kHeading;
        y = row.rail.bottom() + kVariantLine * static_cast<double>(row.why.size() + row.tokens.size()) + gap;
    }
    layout.plot.height = y - gap + 4 - layout.plot.y;
    return true;
}

/// Names left of their rails, which lie as closely as the names allow. What does not fit is counted in the last row.
void namesBeside(VariantLayout& layout, const SceneBuilder& builder, const VariantDiffData& data) {
    double names = 0;
    for (const VariantList& list : data.lists) names = std::max(names, builder.width(list.label, kVariantTitle));
    layout.names = std::ceil(std::min(names + 10, 0.34 * layout.plot.width));
    layout.plot.x += layout.names;
    layout.plot.width -= layout.names;
    const auto fitting = static_cast<std::size_t>(std::max(1.0, layout.plot.height / kLeastPitch));
    const std::size_t lines = std::min(data.variants, fitting),
                      rows = lines < data.variants && lines > 1 ? lines - 1 : lines;
    layout.notShown = data.variants - rows;
    const double pitch =
        std::min(kMostPitch, layout.plot.height / static_cast<double>(std::max<std::size_t>(1, lines)));
    const double rail = std::clamp(std::floor(pitch - 5), 6.0, kRail);
    layout.rows.clear();
    for (std::size_t i = 0; i < rows; ++i) {
        const double top = std::round(layout.plot.y + pitch * static_cast<double>(i) + (pitch - rail) / 2);
        layout.rows.push_back({{layout.plot.x, top, layout.plot.width, rail}, {}, {}});
    }
    layout.plot.height = pitch * static_cast<double>(lines);
}

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
    if (list.balancedNothing) text += ", nothing balanced";
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

ListChange changeOf(const VariantDiffData& data, std::size_t list) {
    const std::vector<TokenIndex>&there = data.lists.front().kept, &here = data.lists[list].kept;
    ListChange change;
    std::ranges::set_difference(here, there, std::back_inserter(change.gained));
    std::ranges::set_difference(there, here, std::back_inserter(change.lost));
    change.jaccard = jaccard(here, there);
    return change;
}

std::string causesText(const VariantList& list) { return fmt::format("{}", fmt::join(causeTexts(list), kBetween)); }

std::string changedTokensText(const ViewInput& input, const ListChange& change) {
    const TokenTable& tokens = input.capture->tokens();
    std::string text;
    for (const auto& [side, list] : {std::pair{"only here", &change.gained}, {"only in the reference", &change.lost}}) {
        const std::size_t named = std::min(list->size(), kMostTokensNamed);
        for (std::size_t i = 0; i < named; ++i)
            text += fmt::format("{}{} “{}”", i > 0 ? ", " : fmt::format("{}{}: ", text.empty() ? "" : kBetween, side),
                                formatCount((*list)[i]), displayText(tokens.textOf((*list)[i])));
        if (named < list->size()) text += fmt::format(" and {} others", list->size() - named);
    }
    return text;
}

std::string VariantCause::change() const {
    return fmt::format("{}: {} → {}", label, fromLabel.empty() ? from : fromLabel, toLabel.empty() ? to : toLabel);
}

VariantLayout variantLayoutOf(const SceneBuilder& builder, const VariantDiffData& data, const ViewInput& input,
                              double top, const Viewport& viewport) {
    const auto roomWith = [&](bool ticks, bool title) {
        VariantLayout layout;
        const double foot = (ticks ? kTickRow : 4) + (title ? kTitleRow : 0) + (viewport.forExport ? 18 : 0);
        layout.tickLabels = ticks;
        layout.axisTitle = title;
        layout.plot = {14, top, viewport.width - 28, std::max(1.0, viewport.height - top - foot)};
        return layout;
    };
    for (const bool title : {true, false})
        if (VariantLayout layout = roomWith(true, title); namesAbove(layout, builder, data, input)) return layout;
    VariantLayout layout = roomWith(true, viewport.height >= kTitleHeight);
    if (layout.plot.height < kLeastPitch * static_cast<double>(data.variants)) layout = roomWith(false, false);
    namesBeside(layout, builder, data);
    return layout;
}

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
