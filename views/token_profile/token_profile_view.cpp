// The score of every token along the prompt, with the line that a token must clear to stay.
#include "core/policies/policy.h"
#include "views/common/chart.h"
#include "views/common/policy_style.h"
#include "views/common/token_marks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace kvscope {

namespace {

struct Profile {
    std::vector<float> scores; ///< of the tokens before the cut; NaN: left the cache earlier
    std::vector<TokenState> states;
    double low = INFINITY, high = -INFINITY;
    double cutOff = NAN;      ///< smallest score that was kept without protection
    std::int64_t choices = 0; ///< tokens kept by score
};

Profile profileOf(const ViewInput& input, const PaneData& pane) {
    Profile profile;
    const HostTensor& scores = pane.result->scores;
    const std::int64_t count = scores.shape[1];
    const auto begin = scores.data.begin() + input.kvHead.value * count;
    profile.scores.assign(begin, begin + count);
    profile.states = tokenStates(input, pane);
    for (std::size_t i = 0; i < profile.scores.size(); ++i) {
        const auto score = static_cast<double>(profile.scores[i]);
        if (!std::isfinite(score)) continue;
        profile.low = std::min(profile.low, score);
        profile.high = std::max(profile.high, score);
        if (profile.states[i] != TokenState::Kept) continue;
        ++profile.choices;
        profile.cutOff = std::isnan(profile.cutOff) ? score : std::min(profile.cutOff, score);
    }
    return profile;
}

TokenMarks marksOf(const Profile& profile) {
    TokenMarks marks;
    marks.states = profile.states;
    marks.places.assign(profile.states.size(), {NAN, NAN});
    for (std::size_t i = 0; i < profile.scores.size(); ++i)
        marks.places[i] = {static_cast<double>(i) + 0.5, static_cast<double>(profile.scores[i])};
    marks.keptRadius = 1.9, marks.evictedRadius = 1.6;
    return marks;
}

/// Segments of the prompt as a band along the top of the plot.
void drawSegments(SceneBuilder& builder, const ViewInput& input, const PlotFrame& frame, const Theme& theme) {
    for (const Segment& segment : input.capture->tokens().segments) {
        const double left = std::max(frame.plot.x, frame.toPixels(segment.begin, 0).x);
        const double right = std::min(frame.plot.right(), frame.toPixels(segment.end, 0).x);
        if (right <= left) continue;
        const bool isContext = segment.kind == SegmentKind::Context;
        builder.rectangle({left, frame.plot.y - 5, std::max(1.0, right - left), 4},
                          isContext ? theme.sunken : theme.text3);
    }
}

void drawCutOff(SceneBuilder& builder, const Profile& profile, const PlotFrame& frame, const Theme& theme) {
    if (std::isnan(profile.cutOff)) return;
    const double y = frame.toPixels(frame.x.low, profile.cutOff).y;
    if (y > frame.plot.y && y < frame.plot.bottom()) drawAcross(builder, frame, profile.cutOff, {theme.ink, 1, {5, 3}});
}

std::vector<LegendEntry> legendOf(const PaneData& pane, const Profile& profile, std::int64_t stride, ThemeId themeId) {
    const Theme& theme = themeOf(themeId);
    const auto count = [&](TokenState state) { return formatCount(std::ranges::count(profile.states, state)); };
    std::int64_t unscored = 0; // block processing scores only cached tokens
    for (std::size_t i = 0; i < profile.states.size() && i < profile.scores.size(); ++i)
        unscored += profile.states[i] == TokenState::Evicted && !std::isfinite(profile.scores[i]) ? 1 : 0;
    const std::string gone =
        unscored > 0 ? fmt::format(", {} of them before the last scores", formatCount(unscored)) : "";
    const std::string sampled = stride > 1 ? fmt::format(", one in {} shown", stride) : "";
    std::vector<LegendEntry> legend = {
        areaEntry(letteredName(pane), policyStyle(pane.policyId, themeId).colour),
        {"kept " + count(TokenState::Kept), Marker::Circle, theme.kept, {}, 3},
        ringEntry("evicted " + count(TokenState::Evicted) + gone + sampled, {theme.evicted, 1.2, {}})};
    if (std::ranges::find(profile.states, TokenState::Protected) != profile.states.end())
        legend.push_back({"protected " + count(TokenState::Protected), Marker::Square, theme.protectedToken, {}, 3});
    if (!std::isnan(profile.cutOff)) // not in the plot: marks lie on both sides of the line
        legend.push_back(lineEntry(
            fmt::format("rank {}: score ≥ {} stays", formatCount(profile.choices), formatShort(profile.cutOff)),
            {theme.ink, 1, {5, 3}}));
    return legend;
}

class TokenProfileView final : public View {
public:
    TokenProfileView()
        : View({.id = "token_profile",
                .name = "Token profile",
                .summary = "The active pane's score along the prompt, kept above the line and evicted below it",
                .paper = "KeyDiff Fig. 3, Compactor Fig. 8",
                .group = ViewGroup::Kept,
                .teaching = TeachingRole::Detail}) {}

    std::string whyNoPicture(const ViewInput& input, const ParameterValues&) const override {
        const PaneData* pane = activePane(input);
        if (!pane) return input.capture ? kNoPane : kNoCapture;
        if (const std::string why = whyEmpty(input, *pane); !why.empty()) return why;
        return pane->result->scores.empty() ? pane->policyName + " gives tokens no score: there is no profile to draw."
                                            : "";
    }

    Scene draw(const ViewInput& input, const ParameterValues&, const Viewport& viewport) const override {
        const PaneData& pane = *activePane(input);
        const Profile profile = profileOf(input, pane);
        const Theme& theme = themeOf(viewport.theme);
        const double margin = std::max(0.06 * (profile.high - profile.low), 1e-9);
        const auto n = static_cast<double>(profile.scores.size());
        const Viewport::Range range =
            viewport.range.value_or(Viewport::Range{0, n, profile.low - margin, profile.high + margin});
        const RunRequest& run = pane.result->request;
        const std::string title =
            run.recorded ? "recorded score" : policyById(pane.policyId).scoreLabel(run.policy.values);
        const TokenMarks marks = marksOf(profile);
        Chart chart(viewport, legendOf(pane, profile, markStride(marks), viewport.theme),
                    {range.xMin, range.xMax, AxisScale::Position, "Token position (0-based)"},
                    {range.yMin, range.yMax, AxisScale::Linear, title});
        SceneBuilder builder = chart.builder(viewport);
        drawGrid(builder, chart.frame, theme);
        drawSegments(builder, input, chart.frame, theme);
        builder.pushClip(chart.frame.plot);
        drawTokenMarks(builder, chart.frame, marks, input.focus, theme);
        drawCutOff(builder, profile, chart.frame, theme);
        builder.popClip();
        return finishChart(chart, input, viewport, true);
    }

    std::string conclude(const ViewInput& input, const ParameterValues&) const override {
        const Profile profile = profileOf(input, *activePane(input));
        if (std::isnan(profile.cutOff)) return "No token is kept for its score: protection fills the budget";
        // How much of the prompt's first half is among the kept: policies that follow recency show it here.
        const std::size_t half = profile.scores.size() / 2;
        const auto keptUntil = [&](auto end) {
            return std::count_if(profile.states.begin(), end,
                                 [](TokenState s) { return s == TokenState::Kept || s == TokenState::Protected; });
        };
        const auto early = keptUntil(profile.states.begin() + static_cast<std::ptrdiff_t>(half)),
                   all = keptUntil(profile.states.end());
        return fmt::format(
            "Tokens with a score of {} or more are kept; {} of {} kept tokens lie in the first half of the prompt",
            formatShort(profile.cutOff), formatCount(early), formatCount(all));
    }

    ViewTable table(const ViewInput& input, const ParameterValues& options) const override {
        const std::vector<std::string> columns = {"token", "text", "score", "state"};
        if (!whyNoPicture(input, options).empty()) return tableOf(columns, {});
        const Profile profile = profileOf(input, *activePane(input));
        return tableOf(columns, std::ssize(profile.scores), [profile, input](std::int64_t row) {
            return tableRow(row, tokenText(input, static_cast<TokenIndex>(row)), profile.scores[row],
                            stateName(profile.states[row]));
        });
    }
};

} // namespace

const View& tokenProfileView() { return onlyOne<TokenProfileView>(); }

} // namespace kvscope
