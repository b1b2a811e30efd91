// The prompt as text. Only visible lines become drawables, so that 100,000 tokens scroll fast.
#include "core/parameters/parameter_rows.h"
#include "core/run/run.h"
#include "views/common/chart.h"
#include "views/common/view_options.h"
#include "views/token_strip/strip_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace kvscope {

namespace {

constexpr double kLegendHeight = 24, kCaptionHeight = 18, kRightMargin = 14;

ParameterTable makeOptions() {
    return {choiceRow("colour", "Colour by",
                      {{"panes", "kept by pane", "one bar per pane"},
                       {"state", "kept or evicted", "active pane"},
                       {"score", "score", "rank of the active pane's score"},
                       {"only_in_a", "only in A", "first pane against second"},
                       {"only_in_b", "only in B", "second pane against first"}},
                      Stage::Select,
                      "What bars and grounds show: the panes that keep a token, its state in the active "
                      "pane, its score, or what only one of two panes keeps.",
                      "KeyDiff Fig. 3, Compactor Fig. 8"),
            colourMapOption("colour_map")}; // as sessions of the first version call it
}

double textWidth(const Viewport& viewport) {
    return std::max(60.0, viewport.width - kStripGutter - kRightMargin - (viewport.forExport ? 0 : kScrollBarWidth));
}

StripMode modeOf(const ParameterValues& options) {
    const std::string& id = options.choice("colour");
    return id == "state"       ? StripMode::State
           : id == "score"     ? StripMode::Score
           : id == "only_in_a" ? StripMode::OnlyInA
           : id == "only_in_b" ? StripMode::OnlyInB
                               : StripMode::Panes;
}

/// Rank of each scored token in its head, 0 (worst) to 1 (best).
std::vector<float> scoreRanks(const ViewInput& input, const PaneData* active) {
    const auto n = static_cast<std::size_t>(input.capture->info().numTokens);
    std::vector<float> ranks(n, NAN);
    if (!active || active->result->scores.empty()) return ranks;
    const HostTensor& scores = active->result->scores;
    const auto m = static_cast<std::size_t>(scores.shape[1]);
    const float* head = scores.data.data() + static_cast<std::size_t>(input.kvHead.value) * m;
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < m; ++i)
        if (!std::isnan(head[i])) order.push_back(i);
    std::ranges::sort(order, [&](auto a, auto b) { return head[a] < head[b] || (head[a] == head[b] && a > b); });
    for (std::size_t r = 0; r < order.size(); ++r)
        ranks[order[r]] = order.size() == 1 ? 1.0f : static_cast<float>(r) / static_cast<float>(order.size() - 1);
    return ranks;
}

StripScene stripSceneOf(const ViewInput& input, const StripLayout& layout, const ParameterValues& options,
                        ThemeId theme) {
    StripScene strip{input, layout, modeOf(options), themeOf(theme), options.choice("colour_map")};
    for (const PaneData& pane : input.panes)
        if (pane.result) {
            strip.panes.push_back(&pane);
            strip.states.push_back(tokenStates(input, pane));
            strip.identities.push_back(identityOf(input, pane, theme));
        }
    if (const PaneData* active = activePane(input); active && active->result) {
        strip.active = active;
        strip.activeStates = tokenStates(input, *active);
    }
    if (strip.mode == StripMode::Score) strip.ranks = scoreRanks(input, strip.active);
    return strip;
}

/// The entry for tokens that no policy sees; none where nothing follows the cut.
std::vector<LegendEntry> unseenEntry(const StripScene& strip) {
    const bool isOwn = strip.mode == StripMode::State && strip.active;
    const std::int64_t seen = isOwn ? strip.active->result->visible : strip.input.cut.token;
    if (std::cmp_greater_equal(std::min<std::int64_t>(seen, strip.input.cut.token), strip.layout.left.size()))
        return {};
    return {{"after the cut: not seen", Marker::Square, strip.theme.masked, {strip.theme.axis, 1, {}}, 5}};
}

std::vector<LegendEntry> legendOf(const StripScene& strip) {
    std::vector<LegendEntry> entries;
    const auto bar = [&](const PaneData& pane, const std::string& words) {
        const PaneIdentity identity = identityOf(strip.input, pane, strip.theme.id);
        entries.push_back(lineEntry(
            words, {identity.colour(), 2.6, identity.isRepeated() ? identity.dash() : std::vector<double>{}}));
    };
    if (strip.mode == StripMode::Panes) {
        for (const PaneData* pane : strip.panes) bar(*pane, letteredName(*pane));
        const bool hasOwnCut = std::ranges::any_of(
            strip.panes, [&](const PaneData* pane) { return pane->result->visible < strip.input.cut.token; });
        entries.push_back(wordsEntry(hasOwnCut ? "no bar: evicted by that pane, or after its own cut"
                                               : "no bar: evicted by that pane"));
    } else if (strip.mode == StripMode::State && strip.active) {
        entries.push_back(barEntry("kept by " + letteredName(*strip.active), strip.theme.kept));
        entries.push_back(barEntry("evicted", strip.theme.evicted));
    } else if (strip.mode == StripMode::Score && strip.active && strip.active->result->scores.empty()) {
        entries.push_back(wordsEntry(letteredName(*strip.active) + " gives tokens no score"));
    } else if (strip.mode == StripMode::Score && strip.active) {
        entries.push_back(wordsEntry("rank of the score of " + letteredName(*strip.active)));
    } else if (strip.panes.size() >= 2) {
        const std::size_t which = strip.mode == StripMode::OnlyInA ? 0 : 1;
        bar(*strip.panes[which], fmt::format("kept by {}, evicted by {}", letteredName(*strip.panes[which]),
                                             letteredName(*strip.panes[1 - which])));
    } else {
        entries.push_back(wordsEntry("two panes are needed for a difference"));
    }
    for (LegendEntry& entry : unseenEntry(strip)) entries.push_back(std::move(entry));
    return entries;
}

constexpr double kRankBar = 64;
const TextStyle kSmall{FontFace::Interface, 11};

/// "worst", the colours of the ranks, "best", from a place in the legend's row. Returns its right end.
double drawRanks(SceneBuilder& builder, const StripScene& strip, double left) {
    constexpr int kColours = 64;
    std::vector<Colour> colours;
    for (int i = 0; i < kColours; ++i) colours.push_back(colourMap(strip.colourMapName, i / (kColours - 1.0)));
    const double y = kLegendHeight / 2;
    double x = left + builder.label({left, y}, "worst", kSmall, strip.theme.text2) + 6;
    builder.image({x, y - 4, kRankBar, 8}, kColours, 1, colours);
    x += kRankBar + 6;
    return x + builder.label({x, y}, "best", kSmall, strip.theme.text2);
}

/// The legend of the scores, with the colours of the ranks after its first entry. Returns its right end.
double drawScoreLegend(SceneBuilder& builder, const StripScene& strip, std::vector<LegendEntry> legend, double width) {
    constexpr double kRanks = kRankBar + 76, kEdge = 24; // with its words
    const std::vector<LegendEntry> unseen = unseenEntry(strip);
    legend.resize(legend.size() - unseen.size());
    const double rest = unseen.empty() ? 0 : legendWidth(unseen, width, 1, builder.textService()) + 14;
    const double y = kLegendHeight / 2;
    const double end =
        drawRanks(builder, strip, drawLegend(builder, {4, y}, width - kEdge - kRanks - rest, legend, strip.theme) + 12);
    return unseen.empty() ? end : drawLegend(builder, {end + 14, y}, width - end - kEdge, unseen, strip.theme);
}

/// Explains the mark of the cut, in as many words as fit.
std::string cutSentence(const SceneBuilder& builder, const ViewInput& input, double room) {
    for (const std::string& words :
         {fmt::format("▼ cut: {}", input.cut.label), fmt::format("▼ cut at {}", formatCount(input.cut.token))})
        if (builder.width(words, kSmall) < room) return words;
    return {};
}

/// The tokens at the pointer's place in the scroll bar come to the middle of what is seen.
std::optional<SettingChange> scrolledTo(const ViewInput& input, const Scene& scene, Point at) {
    const std::optional<Box> track = boxOfPick(scene, kScrollBar);
    const auto seen = tokensInBoxes(scene);
    if (!track || !seen) return std::nullopt;
    const std::int64_t n = input.capture->info().numTokens;
    const double place = (at.y - track->y) / track->height * static_cast<double>(n);
    const std::int64_t top = std::llround(place) - (seen->second - seen->first) / 2;
    return SettingChange{.step = "Scroll", .top = static_cast<TokenIndex>(std::clamp<std::int64_t>(top, 0, n - 1))};
}

class TokenStripView final : public View {
public:
    TokenStripView()
        : View({.id = "token_strip",
                .name = "Token strip",
                .summary = "The text, coloured by what policies keep",
                .paper = "KeyDiff Fig. 3, Compactor Fig. 8",
                .group = ViewGroup::Kept,
                .needs = {{"colour_map", {{"colour", {"score"}}}}},
                .place = ViewPlace::Text,
                .teaching = TeachingRole::Detail,
                .leastHeight = 82},
               makeOptions()) {}

    std::string whyNoPicture(const ViewInput& input, const ParameterValues&) const override {
        return input.capture ? "" : kNoCapture;
    }

    Scene draw(const ViewInput& input, const ParameterValues& options, const Viewport& viewport) const override {
        const Theme& theme = themeOf(viewport.theme);
        Scene scene = blankScene(viewport);
        SceneBuilder builder(scene, *viewport.text);
        const auto layout = layoutStrip(*input.capture, textWidth(viewport), *viewport.text);
        const StripScene strip = stripSceneOf(input, *layout, options, viewport.theme);

        const double captionHeight = viewport.forExport ? kCaptionHeight : 0;
        const std::vector<LegendEntry> legend = legendOf(strip);
        const double top = kLegendHeight + furtherLegendRows(viewport, legend);
        const Box text{0, top, viewport.width, std::max(1.0, viewport.height - top - captionHeight)};
        // The strip scrolls by whole lines, so that no bars lose their text, and until the last line is whole.
        const auto whole = static_cast<std::int64_t>(std::max(1.0, std::floor((text.height - 4) / kStripLead)));
        const std::int64_t furthest = std::max<std::int64_t>(0, layout->lineCount() - whole),
                           first = std::min(layout->lineOf(viewport.top), furthest),
                           end = std::min(first + whole, layout->lineCount());
        const double legendEnd = strip.mode == StripMode::Score && strip.active && !strip.active->result->scores.empty()
                                     ? drawScoreLegend(builder, strip, legend, viewport.width)
                                     : drawTopLegend(builder, viewport, legend, 14, kLegendHeight / 2);
        if (const std::string cut = cutSentence(builder, input, viewport.width - legendEnd - 20); !cut.empty())
            builder.label({viewport.width - 14, kLegendHeight / 2}, cut, kSmall, theme.text2, HorizontalAlign::Right);

        builder.pushClip(text);
        for (std::int64_t line = first; line < end; ++line) {
            const double y = text.y + 4 + static_cast<double>(line - first) * kStripLead;
            drawStripLine(builder, strip, line, {kStripGutter, y});
            drawStripCut(builder, strip, line, {kStripGutter, y});
        }
        builder.popClip();
        if (furthest > 0 && !viewport.forExport)
            drawScrollBar(builder, strip,
                          {viewport.width - kScrollBarWidth - 4, text.y + 3, kScrollBarWidth, text.height - 6},
                          layout->lineStarts[first], layout->lineStarts[end]);
        drawProvenance(builder, input, viewport);
        scene.plot = text;
        return scene;
    }

    std::string conclude(const ViewInput& input, const ParameterValues&) const override {
        const bool chosen = !input.focus.selected.empty();
        auto tokens = chosen ? input.focus.selected : tokensOfKind(*input.capture, SegmentKind::Needle);
        std::string word = chosen ? selectionWord(input.focus) : "needle";
        if (beforeCut(input, tokens).empty()) {
            tokens.resize(static_cast<std::size_t>(input.capture->info().numTokens));
            std::iota(tokens.begin(), tokens.end(), TokenIndex{0});
            word = "seen";
        }
        std::string text;
        for (const PaneData& pane : input.panes) {
            if (!pane.result) continue;
            const auto [hit, of] = keptAmong(input, pane, tokens);
            text += fmt::format("{}{} keeps {} of {} {} tokens at {}", text.empty() ? "" : "; ", pane.policyName,
                                formatCount(hit), formatCount(of), word, keptBudget(*pane.result, input.kvHead));
        }
        return text.empty() ? "No policy has a result yet." : text;
    }

    ViewTable table(const ViewInput& input, const ParameterValues&) const override {
        std::vector<std::string> columns = {"position", "token id", "text", "segment"};
        if (!input.capture) return tableOf(columns, {});
        std::vector<std::vector<TokenState>> states;
        for (const PaneData* pane : readyPanes(input)) {
            columns.push_back(fmt::format("{} {}", pane->letter, paneTitle(*pane)));
            states.push_back(tokenStates(input, *pane));
        }
        return tableOf(columns, input.capture->info().numTokens, [input, states](std::int64_t row) {
            const auto token = static_cast<TokenIndex>(row);
            std::vector<std::string> cells = {std::to_string(row), std::to_string(input.capture->tokens().ids[row]),
                                              tokenText(input, token), segmentOf(*input.capture, token)};
            for (const std::vector<TokenState>& ofPane : states) cells.emplace_back(stateName(ofPane[row]));
            return cells;
        });
    }

    /// The cut goes to the token under the pointer, which the handle itself covers.
    std::optional<SettingChange> draggedTo(const ViewInput& input, const ParameterValues&, const Scene& scene,
                                           PickId handle, Point at) const override {
        if (handle == kScrollBar) return scrolledTo(input, scene, at);
        std::int64_t token = 0;
        for (const Drawable& item : scene.items)
            if (const auto* box = std::get_if<RectangleItem>(&item);
                box && box->pick.kind == PickId::Kind::Token && box->box.contains(at))
                token = box->pick.index;
        if (token <= 0) return std::nullopt;
        return SettingChange{.cut = std::to_string(token), .step = "Cut"};
    }

    std::optional<TokenIndex> scrollTo(const ViewInput& input, const Viewport& viewport,
                                       TokenIndex token) const override {
        const auto layout = layoutStrip(*input.capture, textWidth(viewport), *viewport.text);
        const double linesAbove = (viewport.height - kLegendHeight) / kStripLead / 2 - 0.5;
        return layout->lineStarts[std::max<std::int64_t>(0, layout->lineOf(token) - std::llround(linesAbove))];
    }

    std::optional<TokenIndex> scrollBy(const ViewInput& input, const Viewport& viewport, double pixels) const override {
        const auto layout = layoutStrip(*input.capture, textWidth(viewport), *viewport.text);
        const std::int64_t line = layout->lineOf(viewport.top) + static_cast<std::int64_t>(pixels / kStripLead);
        return layout->lineStarts[std::clamp<std::int64_t>(line, 0, layout->lineCount() - 1)];
    }
};

} // namespace

const View& tokenStripView() { return onlyOne<TokenStripView>(); }

} // namespace kvscope
