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

constexpr double kLine = 15, kAxis = 34, kHeading = 19, kRail = 14, kGap = 10, kMostGap = 26;
constexpr std::size_t kMostTokensNamed = 60, kMostTokenLines = 3;
const TextStyle kTitle{FontFace::Interface, 12, FontWeight::SemiBold}, kText{FontFace::Interface, 11};

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

constexpr const char* kBetween = " · ";

/// One text per cause, the strongest first.
std::vector<std::string> causeTexts(const VariantList& list) {
    std::vector<VariantCause> causes = list.causes;
    std::stable_sort(causes.begin(), causes.end(), [](const VariantCause& a, const VariantCause& b) { return a.alone > b.alone; });
    std::vector<std::string> texts;
    for (const VariantCause& cause : causes) {
        texts.push_back(fmt::format("{} {} → {}", cause.label, cause.from, cause.to));
        if (!cause.traps.empty())
            texts.back() += fmt::format(" ({})", fmt::join(cause.traps, ", "));
        if (cause.alone >= 0)
            texts.back() += fmt::format(", {} alone", formatCount(cause.alone));
    }
    return texts;
}

/// Causes in lines, each cause in one piece; what does not fit into `most` lines is counted at the end of the last.
std::vector<std::string> inLines(const SceneBuilder& builder, const std::vector<std::string>& texts, double width, std::size_t most) {
    std::vector<std::string> lines;
    for (std::size_t i = 0; i < texts.size() && most > 0; ++i) {
        const std::string longer = lines.empty() ? texts[i] : lines.back() + kBetween + texts[i];
        const std::size_t left = texts.size() - i - 1;
        const std::string rest = left > 0 && lines.size() == most ? fmt::format("{}… {} more", kBetween, left) : "";
        if (!lines.empty() && builder.width(longer + rest, kText) <= width) {
            lines.back() = longer;
        } else if (lines.size() < most) {
            lines.push_back(builder.elide(texts[i], kText, width));
        } else {
            const std::string more = fmt::format("{}… {} more", kBetween, left + 1);
            lines.back() = builder.elide(lines.back(), kText, width - builder.width(more, kText)) + more;
            break;
        }
    }
    return lines;
}

/// How many lines of each kind a row may have.
struct Allowance {
    std::size_t causes = 99, tokens = kMostTokenLines;
    bool heading = true;
    double rail = kRail;
};

VariantRow rowOf(const SceneBuilder& builder, const VariantDiffData& data, const ViewInput& input, std::size_t i, double width, const Allowance& allowed) {
    VariantRow row;
    row.rail = {0, 0, width, allowed.rail};
    if (i >= data.lists.size() || !data.lists[i].error.empty())
        return row;
    const VariantList& list = data.lists[i];
    if (i == 0 && allowed.causes > 0)
        row.why = builder.wrap(list.summary, kText, width);
    else if (i > 0)
        row.why = inLines(builder, causeTexts(list), width, allowed.causes);
    row.why.resize(std::min(row.why.size(), allowed.causes));
    if (allowed.tokens > 0 && i > 0)
        row.tokens = builder.wrap(changedTokensText(input, changeOf(data, i)), kText, width);
    if (row.tokens.size() > allowed.tokens) {
        row.tokens.resize(allowed.tokens);
        row.tokens.back() = builder.elide(row.tokens.back() + " …", kText, width);
    }
    return row;
}

double heightOf(const VariantRow& row, const Allowance& allowed) {
    return (allowed.heading ? kHeading : 0) + row.rail.height + kLine * static_cast<double>(row.why.size() + row.tokens.size());
}

/// From everything down to bare rails.
std::vector<Allowance> allowances() {
    std::vector<Allowance> all;
    for (std::size_t tokens = kMostTokenLines + 1; tokens-- > 0;)
        all.push_back({99, tokens, true, kRail});
    for (std::size_t causes = 8; causes-- > 0;)
        all.push_back({causes, 0, true, causes > 0 ? kRail : 8});
    all.push_back({0, 0, false, 6});
    return all;
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
    return fmt::format("{}", fmt::join(causeTexts(list), kBetween));
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

VariantLayout variantLayoutOf(const SceneBuilder& builder, const VariantDiffData& data, const ViewInput& input, double top, const Viewport& viewport) {
    VariantLayout layout;
    const double foot = kAxis + (viewport.forExport ? 18 : 0);
    layout.plot = {14, top, viewport.width - 28, viewport.height - top - foot};
    const auto count = static_cast<double>(std::max<std::size_t>(1, data.variants));
    double gap = 0;
    for (const Allowance& allowed : allowances()) {
        layout.rows.clear();
        layout.heading = allowed.heading;
        double needed = 0;
        for (std::size_t i = 0; i < data.variants; ++i) {
            layout.rows.push_back(rowOf(builder, data, input, i, layout.plot.width, allowed));
            needed += heightOf(layout.rows.back(), allowed);
        }
        gap = (layout.plot.height - needed) / count;
        if (gap >= kGap)
            break;
    }
    gap = std::clamp(gap, 2.0, kMostGap);
    double y = layout.plot.y;
    for (VariantRow& row : layout.rows) {
        row.top = y;
        row.rail.x = layout.plot.x;
        row.rail.y = y + (layout.heading ? kHeading : 0);
        y = row.rail.bottom() + kLine * static_cast<double>(row.why.size() + row.tokens.size()) + gap;
    }
    layout.plot.height = y - gap + 4 - layout.plot.y;
    return layout;
}

void drawVariantLists(SceneBuilder& builder, const VariantLayout& layout, const VariantDiffData& data, const Theme& theme) {
    for (std::size_t i = 0; i < data.lists.size(); ++i) {
        const VariantList& list = data.lists[i];
        const ListChange change = list.error.empty() ? changeOf(data, i) : ListChange{};
        const VariantRow& row = layout.rows[i];
        const Box& rail = row.rail;
        if (layout.heading) {
            const std::string label = builder.elide(list.label, kTitle, 0.4 * rail.width);
            const double width = builder.text({rail.x, rail.y - 7}, label, kTitle, theme.text1);
            builder.text({rail.x + width + 10, rail.y - 7}, builder.elide(headingOf(list, change, i == 0), kText, rail.width - width - 10), kText,
                         theme.text2);
        }
        builder.rectangle(rail, theme.sunken, {}, 0, {PickId::Kind::Cell, static_cast<std::int64_t>(i)});
        if (list.error.empty()) {
            drawTokens(builder, rail, list.kept, data.visible, withAlpha(theme.kept, i == 0 ? 0.9 : 0.4));
            drawTokens(builder, rail, change.gained, data.visible, theme.kept);
            drawTokens(builder, rail, change.lost, data.visible, theme.evicted);
        }
        double y = rail.bottom() + kLine - 2;
        for (const auto& [lines, colour] : {std::pair{&row.why, theme.text2}, {&row.tokens, theme.text3}})
            for (const std::string& line : *lines) {
                builder.text({rail.x, y}, line, kText, colour);
                y += kLine;
            }
    }
    drawScale(builder, layout.plot, data.visible, theme);
}

} // namespace kvscope
