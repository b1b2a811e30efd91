// Block prompt processing as a picture: time runs to the right in blocks, a token is a line for as long as it stays in
// the cache.
#include "core/parameters/parameter_rows.h"
#include "core/policies/block_processing.h"
#include "core/policies/policy.h"
#include "core/run/run.h"
#include "views/block_timeline/block_measures.h"
#include "views/common/chart.h"
#include "views/common/pane_offers.h"
#include "views/common/policy_style.h"
#include "views/common/view_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace kvscope {

namespace {

constexpr std::size_t kMostLines = 4'000;

ParameterTable makeOptions() {
    return {
        choiceRow("picture", "Picture",
                  {{"timeline", "Timeline", "when each token leaves"},
                   {"drift", "Anchor drift", "mean key of the cache against that of all keys, step by step"},
                   {"block_size", "Error against block size", "the same policy and budget in blocks of other sizes"}},
                  Stage::Features, "Which plot.", "KeyDiff 2.4, Tables 9 and 10")};
}

bool readsInBlocks(const PaneData& pane) {
    return !pane.result->request.recorded && pane.result->request.policy.values.has("prompt_block");
}

/// Why there is no timeline and no step sequence; empty where there is one.
std::string whyNoTimeline(const ViewInput& input) {
    const PaneData* pane = activePane(input);
    if (const std::string why = whyEmpty(input, pane); !why.empty()) return why;
    if (!pane->result->simulated && !readsInBlocks(*pane))
        return pane->policyName + " does not read the prompt in blocks. Choose a policy with a prompt block (KeyDiff, "
                                  "say) and set it to 128 (prompt_block=128).";
    if (!pane->result->simulated)
        return pane->policyName + " chose once, over the whole prompt. Set its prompt block (prompt_block=128) to see "
                                  "it evict block by block.";
    return pane->result->steps.empty() ? "The budget holds the whole prompt: no block evicted anything." : "";
}

constexpr const char* kMeasuring = "Running the prompt in blocks…";

/// When a token left the cache; of a token that stayed, `left` is the end of the prompt.
struct Life {
    TokenIndex token = 0, left = 0;
    bool evicted = false;
};

std::vector<Life> livesOf(const ViewInput& input, const RunResult& result) {
    std::vector<Life> lives(static_cast<std::size_t>(result.visible));
    for (std::size_t i = 0; i < lives.size(); ++i)
        lives[i] = {static_cast<TokenIndex>(i), static_cast<TokenIndex>(result.visible), false};
    for (const BlockStep& step : result.steps)
        for (const TokenIndex token : step.evicted[input.kvHead.value]) lives[token] = {token, step.end, true};
    return lives;
}

/// The lifetimes as known after `read` tokens.
std::vector<Life> livesUntil(std::vector<Life> lives, TokenIndex read) {
    lives.resize(std::min(lives.size(), static_cast<std::size_t>(read)));
    for (Life& life : lives)
        if (life.left > read) life = {life.token, read, false};
    return lives;
}

/// Which tokens of a range of positions are drawn: so many that lines can be told apart, and the same tokens in every
/// range of the same length.
struct Drawn {
    std::size_t begin = 0, end = 0, stride = 1;

    Drawn(const std::vector<Life>& lives, const Viewport::Range& range) {
        const auto within = [&](double at) {
            return static_cast<std::size_t>(std::clamp(at, 0.0, static_cast<double>(lives.size())));
        };
        begin = within(std::floor(range.yMin));
        end = std::max(begin, within(std::ceil(range.yMax)));
        stride = std::max<std::size_t>(1, (end - begin + kMostLines - 1) / kMostLines);
        begin = (begin + stride - 1) / stride * stride;
    }
};

Colour colourOf(bool evicted, const Theme& theme) {
    return withAlpha(evicted ? theme.text3 : theme.kept, evicted ? 0.35 : 0.8);
}

void drawLives(SceneBuilder& builder, const std::vector<Life>& lives, const Drawn& drawn, const PlotFrame& frame,
               const Theme& theme) {
    for (std::size_t i = drawn.begin; i < drawn.end; i += drawn.stride) {
        const Life& life = lives[i];
        const double y = static_cast<double>(life.token) + 0.5;
        builder.line(frame.toPixels(life.token, y), frame.toPixels(life.left, y),
                     {colourOf(life.evicted, theme), 1, {}});
    }
}

/// Drawn last and unclipped, because the evictions of the last step lie on the cursor or on the right edge of the plot.
void drawEvictions(SceneBuilder& builder, const std::vector<Life>& lives, const Drawn& drawn, const PlotFrame& frame,
                   const Theme& theme) {
    GatheredMarks ends;
    const Box& plot = frame.plot;
    for (std::size_t i = drawn.begin; i < drawn.end; i += drawn.stride) {
        const Life& life = lives[i];
        const Point to = frame.toPixels(life.left, static_cast<double>(life.token) + 0.5);
        const bool inside =
            to.x >= plot.x - 0.5 && to.x <= plot.right() + 0.5 && to.y >= plot.y - 0.5 && to.y <= plot.bottom() + 0.5;
        if (life.evicted && inside) ends.add(to, life.token);
    }
    builder.points(ends.as("evicted", PickId::Kind::Token, Marker::Circle, 1.8, kTransparent, {theme.evicted, 1, {}}));
}

/// A selected token gets a dash before its line, and the line keeps the colour of the token's state. The lines of the
/// first tokens, which have no room for a dash, and of the hovered token are drawn in ink.
void drawFocus(SceneBuilder& builder, const ViewInput& input, const std::vector<Life>& lives, const PlotFrame& frame,
               const Theme& theme) {
    constexpr double kDash = 7, kGap = 2;
    const auto mark = [&](TokenIndex token, double width, bool before) {
        if (token < 0 || std::cmp_greater_equal(token, lives.size())) return;
        const double y = static_cast<double>(token) + 0.5;
        Point from = frame.toPixels(token, y), to = frame.toPixels(lives[token].left, y);
        if (before && from.x - kGap - kDash >= frame.plot.x) {
            to.x = from.x - kGap;
            from.x = to.x - kDash;
        }
        builder.line(from, to, {theme.ink, width, {}});
    };
    for (const TokenIndex token : input.focus.selected) mark(token, 1.3, true);
    mark(input.focus.hovered, 2, false);
}

Scene drawTimeline(const ViewInput& input, const PaneData& pane, const Viewport& viewport) {
    const RunResult& result = *pane.result;
    const Theme& theme = themeOf(viewport.theme);
    const auto n = static_cast<double>(result.visible);
    const Viewport::Range range = viewport.range.value_or(Viewport::Range{0, n, 0, n});
    std::vector<Life> lives = livesOf(input, result);
    if (input.cursor) lives = livesUntil(std::move(lives), *input.cursor);
    const Drawn drawn(lives, range);
    std::vector<LegendEntry> legend = {
        areaEntry(letteredName(pane) + ", simulated", policyStyle(pane.policyId, viewport.theme).colour),
        barEntry(input.cursor ? "in the cache" : "in the cache to the end", colourOf(false, theme)),
        barEntry("until it is evicted", colourOf(true, theme)), ringEntry("evicted", {theme.evicted, 1.2, {}})};
    if (drawn.stride > 1) legend.push_back(wordsEntry(fmt::format("1 of {} tokens drawn", drawn.stride)));
    Chart chart(viewport, legend, {range.xMin, range.xMax, AxisScale::Position, "Tokens processed"},
                {range.yMax, range.yMin, AxisScale::Position, "Token position (0-based)"});
    SceneBuilder builder = chart.builder(viewport);
    builder.pushClip(chart.frame.plot);
    for (const BlockStep& step : result.steps) drawUpright(builder, chart.frame, step.end, {theme.grid, 1, {}});
    drawLives(builder, lives, drawn, chart.frame, theme);
    drawFocus(builder, input, lives, chart.frame, theme);
    if (input.cursor) drawStepCursor(builder, chart.frame, theme, *input.cursor);
    builder.popClip();
    drawEvictions(builder, lives, drawn, chart.frame, theme);
    if (input.cursor) drawStepChip(builder, chart.frame, theme, *input.cursor);
    return finishChart(chart, input, viewport, true);
}

/// Steps with the drift of the anchor, or block sizes.
ViewTable measuresTable(const BlockTimelineData& data, bool drift) {
    std::vector<std::vector<std::string>> rows;
    for (const auto& step : data.drift)
        if (drift) rows.push_back(tableRow(step.end, step.cosine, step.ratio));
    for (const auto& size : data.sizes)
        if (!drift) rows.push_back(tableRow(size.block, size.error, fmt::format("{:.6f}", size.overlap), size.steps));
    return drift ? tableOf({"tokens read", "cosine of the means", "ratio of their lengths"}, std::move(rows))
                 : tableOf({"tokens per block (0: at once)", "output error", "Jaccard with at once", "steps"},
                           std::move(rows));
}

const std::vector<TokenIndex>& evictedIn(const BlockStep& step, const ViewInput& input) {
    return step.evicted[input.kvHead.value];
}

std::int64_t common(const std::vector<TokenIndex>& ascending, const std::vector<TokenIndex>& tokens) {
    return std::ranges::count_if(tokens, [&](TokenIndex t) { return std::ranges::binary_search(ascending, t); });
}

/// " Needle: 14 of 16 are still there." about the selected tokens that were read.
std::string aboutSelection(const ViewInput& input, const RunResult& result, std::size_t events) {
    const TokenIndex read = result.steps[events - 1].end;
    std::int64_t seen = std::ranges::count_if(input.focus.selected, [&](TokenIndex t) { return t < read; });
    if (seen == 0) return {};
    std::int64_t lost = 0;
    for (std::size_t i = 0; i < events; ++i) lost += common(evictedIn(result.steps[i], input), input.focus.selected);
    std::string word = selectionWord(input.focus);
    word.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(word.front())));
    return fmt::format(" {}: {} of {} still there.", word, seen - lost, seen);
}

/// First token of the block that ends with a step.
TokenIndex blockBegin(const RunResult& result, const BlockStep& step) {
    const auto ends = blockEnds(result.request.policy.values, result.visible, result.requested);
    const auto own = std::ranges::lower_bound(ends, step.end);
    return own == ends.begin() ? 0 : *(own - 1);
}

/// One event per block that evicts. The pane has a result with steps.
StepSequence blockStepSequence(const ViewInput& input, const PaneData& pane) {
    StepSequence sequence;
    sequence.title = letteredName(pane) + ": the prompt in blocks";
    for (const BlockStep& step : pane.result->steps) {
        sequence.events.push_back(step.end);
        if (common(evictedIn(step, input), input.focus.selected) > 0) sequence.milestones.push_back(step.end);
    }
    return sequence;
}

/// Describes the last block at or before the cursor, in at most two lines.
std::string blockCaption(const ViewInput& input, const PaneData& pane) {
    const RunResult& result = *pane.result;
    const StepSequence sequence = blockStepSequence(input, pane);
    const std::size_t events = eventsUntil(sequence.events, input.cursor);
    if (events == 0)
        return fmt::format("Up to token {} the cache holds all: the budget of {} tokens is not exceeded before.",
                           formatCount(*input.cursor), formatCount(result.requested));
    const BlockStep& step = result.steps[events - 1];
    const TokenIndex begin = blockBegin(result, step);
    const auto& evicted = evictedIn(step, input);
    const auto leaving = std::ssize(evicted);
    const auto own = std::ranges::count_if(evicted, [&](TokenIndex t) { return t >= begin; });
    return fmt::format("Tokens {} to {} enter, the cache holds {}. It goes back to {}: {} leave, {} of them came in "
                       "with this block.{}",
                       formatCount(begin), formatCount(step.end - 1), formatCount(step.cached),
                       formatCount(step.cached - leaving), formatCount(leaving), formatCount(own),
                       aboutSelection(input, result, events));
}

class BlockTimelineView final : public View {
public:
    BlockTimelineView()
        : View({.id = "block_timeline",
                .name = "Block timeline",
                .summary = "When each token leaves the cache while the prompt is processed in blocks",
                .paper = "KeyDiff 2.4 and Fig. 1",
                .group = ViewGroup::Algorithm,
                .data = "block_timeline",
                .teaching = TeachingRole::Steps},
               makeOptions()) {}

    std::string whyNoPicture(const ViewInput& input, const ParameterValues& options) const override {
        const std::string& picture = options.choice("picture");
        const PaneData* pane = activePane(input);
        const bool anySize = picture == "block_size" && whyEmpty(input, pane).empty() && readsInBlocks(*pane);
        if (const std::string why = anySize ? "" : whyNoTimeline(input); !why.empty() || picture == "timeline")
            return why;
        if (const std::string why = whyNoData(input, kMeasuring); !why.empty()) return why;
        const auto data = dataAs<BlockTimelineData>(input);
        return (picture == "drift" ? data->drift.empty() : data->sizes.empty()) ? kMeasuring : "";
    }

    Scene draw(const ViewInput& input, const ParameterValues& options, const Viewport& viewport) const override {
        const std::string& picture = options.choice("picture");
        const PaneData& pane = *activePane(input);
        if (picture == "timeline") return drawTimeline(input, pane, viewport);
        const auto data = dataAs<BlockTimelineData>(input);
        return picture == "drift" ? drawAnchorDrift(*data, input, pane, viewport)
                                  : drawBlockSizes(*data, input, pane, viewport);
    }

    std::string conclude(const ViewInput& input, const ParameterValues& options) const override {
        if (const std::string& picture = options.choice("picture"); picture != "timeline") {
            const auto data = dataAs<BlockTimelineData>(input);
            if (picture != "drift") return sizesFinding(*data, *activePane(input));
            BlockTimelineData seen = *data;
            std::erase_if(seen.drift, [&](const auto& step) { return input.cursor && step.end > *input.cursor; });
            return driftFinding(seen, *activePane(input));
        }
        const RunResult& result = *activePane(input)->result;
        std::int64_t atOnce = 0, evicted = 0, steps = 0;
        for (const BlockStep& step : result.steps) {
            if (input.cursor && step.end > *input.cursor) break; // the picture does not show later steps
            ++steps;
            const auto& tokens = step.evicted[input.kvHead.value];
            const TokenIndex begin = blockBegin(result, step);
            evicted += std::ssize(tokens);
            atOnce += std::ranges::count_if(tokens, [&](TokenIndex t) { return t >= begin; });
        }
        return fmt::format("{} in {}; {} of {} left with the block that {} came in", formatCounted(evicted, "eviction"),
                           formatCounted(steps, "step"), formatCount(atOnce), formatCounted(evicted, "evicted token"),
                           evicted == 1 ? "it" : "they");
    }

    ViewTable table(const ViewInput& input, const ParameterValues& options) const override {
        if (const std::string& picture = options.choice("picture");
            picture != "timeline" && whyNoPicture(input, options).empty())
            return measuresTable(*dataAs<BlockTimelineData>(input), picture == "drift");
        std::vector<std::vector<std::string>> rows;
        if (whyNoPicture(input, options).empty())
            for (const Life& life : livesOf(input, *activePane(input)->result))
                rows.push_back(tableRow(life.token, tokenText(input, life.token),
                                        life.evicted ? std::to_string(life.left) : "",
                                        life.evicted ? "evicted" : "kept"));
        return tableOf({"token", "text", "left after token", "state"}, std::move(rows));
    }

    std::optional<PaneOffer> offer(const ViewInput& input, const ParameterValues& options) const override {
        const PaneData* pane = activePane(input);
        const bool ready = pane && pane->result;
        if (!input.capture || (pane && !ready && pane->error.empty()) || (ready && pane->result->simulated))
            return std::nullopt;
        if (ready && readsInBlocks(*pane)) {
            if (options.choice("picture") == "block_size") return std::nullopt; // this picture runs every size itself
            return PaneOffer{.settingChange = {.pane = input.activePane,
                                               .values = {{"prompt_block", "128"}},
                                               .step = "Prompt block"},
                             .label = "Set its prompt block to 128"};
        }
        for (std::size_t i = 0; i < input.panes.size(); ++i)
            if (input.panes[i].result && input.panes[i].result->simulated)
                return offerToShow(input, static_cast<int>(i));
        return PaneOffer{.spec = firstOf(PolicyFamily::KeyDiff) + ",prompt_block=128"};
    }

    /// Facts about a mark of the two pictures of measures; a click on a block size sets it.
    PointFacts inspect(const ViewInput& input, const ParameterValues& options, const Scene& scene,
                       Point at) const override {
        const std::string& picture = options.choice("picture");
        const PickId pick = pickAt(scene, at, 4);
        if (picture == "timeline" || pick.kind != PickId::Kind::Node) return {};
        const auto data = dataAs<BlockTimelineData>(input);
        PointFacts facts;
        if (picture == "drift" && std::cmp_less(pick.index, data->drift.size())) {
            const auto& step = data->drift[pick.index];
            facts.rows = {{"tokens read", formatCount(step.end)},
                          {"cosine of the means", formatFixed(step.cosine, 4)},
                          {"ratio of their lengths", formatFixed(step.ratio, 3)}};
        } else if (picture == "block_size" &&
                   std::cmp_less(pick.index + 1, data->sizes.size())) { // the first size has no mark
            const auto& size = data->sizes[static_cast<std::size_t>(pick.index) + 1];
            facts.rows = {{"tokens per block", formatCount(size.block)},
                          {"output error", formatShort(size.error)},
                          {"evictions in", formatCounted(size.steps, "step")},
                          {"Jaccard with at once", formatFixed(size.overlap, 2)},
                          {"click", "gives the pane this block"}};
            facts.settingChange = SettingChange{input.activePane, {{"prompt_block", std::to_string(size.block)}}, {}};
        }
        return facts;
    }

    StepSequence stepSequence(const ViewInput& input, const ParameterValues&) const override {
        return whyNoTimeline(input).empty() ? blockStepSequence(input, *activePane(input)) : StepSequence{};
    }

    std::string caption(const ViewInput& input, const ParameterValues&) const override {
        return whyNoTimeline(input).empty() ? blockCaption(input, *activePane(input)) : std::string();
    }
};

} // namespace

const View& blockTimelineView() { return onlyOne<BlockTimelineView>(); }

} // namespace kvscope
