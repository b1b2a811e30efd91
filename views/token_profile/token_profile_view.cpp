// The score of every token along the prompt, with the line that a token must clear to stay.
#include "core/parameters/parameter_rows.h"
#include "core/run/run.h"
#include "views/common/chart.h"
#include "views/common/policy_style.h"
#include "views/common/token_marks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace kvscope {

namespace {

constexpr double kLane = 15; // height in pixels of the protected tokens' lane

enum class ScoreAxis { Linear, Logarithmic, Rank };

/// Protected tokens lie in a lane of their own: they may score far above all others, or nothing at all.
struct Profile {
    std::vector<float> scores; ///< of the tokens before the cut; NaN: left the cache earlier
    std::vector<TokenState> states;
    ScoreAxis axis = ScoreAxis::Linear;
    std::vector<double> heights;     ///< on the axis, of tokens with a score
    double low = 0, high = 1;        ///< of the heights of tokens without protection
    double cutOff = NAN, line = NAN; ///< smallest score that was kept without protection, and its height
    double cutRank = NAN;            ///< rank of that token; of equal scores the last
    std::int64_t evictedAbove = 0;   ///< evicted tokens at or above it: query heads may choose for themselves
    std::int64_t atFoot = 0;         ///< scores drawn at the foot of a logarithmic axis

    bool isFree(std::size_t token) const { return states[token] != TokenState::Protected; }
};

ParameterTable makeOptions() {
    return {choiceRow("axis", "Score axis",
                      {{"automatic", "Automatic", "logarithmic where few scores tower above the others"},
                       {"linear", "Linear", "the score itself"},
                       {"log", "Logarithmic", "powers of ten of the score"},
                       {"rank", "Rank", "0 is best: equal steps, whatever the scores"}},
                      Stage::Select, "How high a token lies. Protected tokens have a lane of their own.",
                      "the profile's own axis")};
}

/// Whether few scores are large, as for attention: on a linear axis all others would lie on 0.
bool isHeavyTailed(const Profile& profile) {
    constexpr float kTowering = 20;
    std::vector<float> free;
    for (std::size_t i = 0; i < profile.scores.size(); ++i)
        if (std::isfinite(profile.scores[i]) && profile.isFree(i)) free.push_back(profile.scores[i]);
    if (free.size() < 8 || *std::ranges::min_element(free) < 0) return false;
    const auto middle = free.begin() + std::ssize(free) / 2;
    std::ranges::nth_element(free, middle);
    return *std::ranges::max_element(free) > kTowering * *middle;
}

ScoreAxis axisOf(const Profile& profile, const ParameterValues& options) {
    const std::string& axis = options.choice("axis");
    return axis == "rank"                                                     ? ScoreAxis::Rank
           : axis == "log" || (axis == "automatic" && isHeavyTailed(profile)) ? ScoreAxis::Logarithmic
                                                                              : ScoreAxis::Linear;
}

/// Ranks of scored tokens from 0 as everywhere: by score descending, then by position.
std::vector<double> ranksOf(const std::vector<float>& scores) {
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < scores.size(); ++i)
        if (std::isfinite(scores[i])) order.push_back(i);
    std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return scores[a] > scores[b]; });
    std::vector<double> ranks(scores.size(), NAN);
    for (std::size_t rank = 0; rank < order.size(); ++rank) ranks[order[rank]] = static_cast<double>(rank);
    return ranks;
}

/// log10 of the scores; a score without a logarithm, or six powers of ten below the best, lies at the foot.
void setLogarithms(Profile& profile) {
    constexpr double kMostDecades = 6;
    double best = 0, least = INFINITY;
    for (std::size_t i = 0; i < profile.scores.size(); ++i)
        if (const auto score = static_cast<double>(profile.scores[i]); score > 0 && profile.isFree(i)) {
            best = std::max(best, score);
            least = std::min(least, score);
        }
    const double foot = best > 0 ? std::log10(std::max(least, best * std::pow(10, -kMostDecades))) : 0;
    for (std::size_t i = 0; i < profile.scores.size(); ++i) {
        const auto score = static_cast<double>(profile.scores[i]);
        if (!std::isfinite(score)) continue;
        const bool fits = score > 0 && std::log10(score) >= foot;
        profile.heights[i] = fits ? std::log10(score) : foot;
        profile.atFoot += !fits && profile.isFree(i);
    }
}

Profile profileOf(const ViewInput& input, const PaneData& pane, const ParameterValues& options) {
    Profile profile;
    const HostTensor& scores = pane.result->scores;
    const std::int64_t count = scores.shape[1];
    const auto begin = scores.data.begin() + input.kvHead.value * count;
    profile.scores.assign(begin, begin + count);
    profile.states = tokenStates(input, pane);
    profile.axis = axisOf(profile, options);
    profile.heights.assign(profile.scores.begin(), profile.scores.end());
    if (profile.axis == ScoreAxis::Rank) profile.heights = ranksOf(profile.scores);
    if (profile.axis == ScoreAxis::Logarithmic) setLogarithms(profile);
    double low = INFINITY, high = -INFINITY;
    for (std::size_t i = 0; i < profile.scores.size(); ++i) {
        const auto score = static_cast<double>(profile.scores[i]);
        if (!std::isfinite(score) || !profile.isFree(i)) continue;
        low = std::min(low, profile.heights[i]);
        high = std::max(high, profile.heights[i]);
        if (profile.states[i] != TokenState::Kept) continue;
        if (score >= profile.cutOff) continue; // false while cutOff is NaN
        profile.cutOff = score;
    }
    const std::vector<double> ranks = ranksOf(profile.scores);
    for (std::size_t i = 0; i < profile.scores.size(); ++i) {
        const auto score = static_cast<double>(profile.scores[i]);
        if (profile.states[i] == TokenState::Kept && score == profile.cutOff)
            profile.line = profile.heights[i], profile.cutRank = ranks[i];
        profile.evictedAbove += profile.states[i] == TokenState::Evicted && score >= profile.cutOff;
    }
    if (low <= high) profile.low = low, profile.high = std::max(high, low + 1e-9 * std::max(1.0, std::abs(low)));
    return profile;
}

/// Marks in the lane lie at the height `lane` of the axis.
TokenMarks marksOf(const Profile& profile, double lane) {
    TokenMarks marks;
    marks.states = profile.states;
    marks.places.assign(profile.states.size(), {NAN, NAN});
    for (std::size_t i = 0; i < profile.scores.size(); ++i)
        marks.places[i] = {static_cast<double>(i) + 0.5, profile.isFree(i) ? profile.heights[i] : lane};
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
    if (std::isnan(profile.line)) return;
    const double y = frame.toPixels(frame.x.low, profile.line).y;
    if (y > frame.plot.y && y < frame.plot.bottom()) drawAcross(builder, frame, profile.line, {theme.ink, 1, {5, 3}});
}

/// The texts of the highest tokens without protection, as many as stand beside each other.
void drawWinners(SceneBuilder& builder, const ViewInput& input, const Profile& profile, const PlotFrame& frame,
                 const Theme& theme) {
    constexpr double kWidth = 60, kLeastHeight = 110;
    constexpr std::size_t kMost = 5, kLookedAt = 200;
    if (frame.plot.height < kLeastHeight || frame.plot.width < 4 * kWidth) return;
    const std::vector<double> ranks = ranksOf(profile.scores);
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < ranks.size(); ++i)
        if (std::isfinite(ranks[i]) && profile.isFree(i)) order.push_back(i);
    const auto looked = order.begin() + static_cast<std::ptrdiff_t>(std::min(order.size(), kLookedAt));
    std::ranges::partial_sort(order, looked, {}, [&](std::size_t token) { return ranks[token]; });
    order.erase(looked, order.end());
    const TextStyle style{FontFace::Interface, 10};
    std::vector<double> taken;
    for (const std::size_t token : order) {
        const Point at = frame.toPixels(static_cast<double>(token) + 0.5, profile.heights[token]);
        const double x = std::clamp(at.x, frame.plot.x + kWidth / 2, frame.plot.right() - kWidth / 2);
        if (!frame.plot.contains(at) || taken.size() == kMost ||
            std::ranges::any_of(taken, [&](double other) { return std::abs(other - x) < kWidth + 6; }))
            continue;
        taken.push_back(x);
        const std::string text = builder.elide(tokenText(input, static_cast<TokenIndex>(token)), style, kWidth);
        if (at.y >= frame.plot.y + 16) {
            builder.label({x, at.y - 9}, text, style, theme.text2, HorizontalAlign::Centre);
        } else { // no room above it
            const bool toTheRight = at.x + 8 + kWidth < frame.plot.right();
            builder.label({at.x + (toTheRight ? 8 : -8), at.y}, text, style, theme.text2,
                          toTheRight ? HorizontalAlign::Left : HorizontalAlign::Right);
        }
    }
}

bool hasLane(const Profile& profile) {
    return std::ranges::find(profile.states, TokenState::Protected) != profile.states.end();
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
    if (hasLane(profile))
        legend.push_back({"protected " + count(TokenState::Protected), Marker::Square, theme.protectedToken, {}, 3});
    if (!std::isnan(profile.cutOff)) { // named here, because marks lie on both sides of the line
        const std::string rank = formatCount(std::llround(profile.cutRank)), score = formatShort(profile.cutOff);
        legend.push_back(lineEntry(profile.evictedAbove == 0
                                       ? fmt::format("rank {}: score ≥ {} stays", rank, score)
                                       : fmt::format("rank {}: smallest kept score {}", rank, score),
                                   {theme.ink, 1, {5, 3}}));
    }
    if (profile.atFoot > 0)
        legend.push_back(wordsEntry(fmt::format("{} at or below the foot of the axis", formatCount(profile.atFoot))));
    return legend;
}

/// The whole profile with the lane above it. A zoomed range keeps its heights only where they suit this axis.
Viewport::Range rangeOf(const Profile& profile, const Viewport& viewport) {
    const double span = profile.high - profile.low, margin = std::max(0.06 * span, 1e-9),
                 lane = hasLane(profile) ? 0.14 * span : 0;
    const bool down = profile.axis == ScoreAxis::Rank;
    const Viewport::Range whole{0, static_cast<double>(profile.scores.size()), profile.low - margin - (down ? lane : 0),
                                profile.high + margin + (down ? 0 : lane)};
    if (!viewport.range) return whole;
    Viewport::Range range = *viewport.range;
    if (range.yMax < profile.low || range.yMin > profile.high || range.yMax - range.yMin < 1e-3 * span)
        range.yMin = whole.yMin, range.yMax = whole.yMax;
    return range;
}

AxisSpec scoreAxisOf(const Profile& profile, const Viewport::Range& range, const std::string& score) {
    switch (profile.axis) {
    case ScoreAxis::Rank: return {range.yMax, range.yMin, AxisScale::Linear, "rank of the score, 0 is best"};
    case ScoreAxis::Logarithmic: return {range.yMin, range.yMax, AxisScale::Linear, score + ", log10"};
    case ScoreAxis::Linear: break;
    }
    return {range.yMin, range.yMax, AxisScale::Linear, score};
}

class TokenProfileView final : public View {
public:
    TokenProfileView()
        : View({.id = "token_profile",
                .name = "Token profile",
                .summary = "The active pane's score along the prompt, kept above the line and evicted below it",
                .paper = "KeyDiff Fig. 3, Compactor Fig. 8",
                .group = ViewGroup::Kept,
                .teaching = TeachingRole::Detail},
               makeOptions()) {}

    std::string whyNoPicture(const ViewInput& input, const ParameterValues&) const override {
        const PaneData* pane = activePane(input);
        if (const std::string why = whyEmpty(input, pane); !why.empty()) return why;
        return pane->result->scores.empty() ? pane->policyName + " gives tokens no score: there is no profile to draw."
                                            : "";
    }

    Scene draw(const ViewInput& input, const ParameterValues& options, const Viewport& viewport) const override {
        const PaneData& pane = *activePane(input);
        const Profile profile = profileOf(input, pane, options);
        const Theme& theme = themeOf(viewport.theme);
        const Viewport::Range range = rangeOf(profile, viewport);
        const std::int64_t stride = markStride(marksOf(profile, 0));
        Chart chart(viewport, legendOf(pane, profile, stride, viewport.theme),
                    {range.xMin, range.xMax, AxisScale::Position, "Token position (0-based)"},
                    scoreAxisOf(profile, range, scoreTitle(pane)));
        SceneBuilder builder = chart.builder(viewport);
        const Box& plot = chart.frame.plot;
        drawGrid(builder, chart.frame, theme);
        drawSegments(builder, input, chart.frame, theme);
        if (hasLane(profile)) builder.rectangle({plot.x, plot.y, plot.width, kLane}, theme.sunken);
        builder.pushClip(plot);
        drawTokenMarks(builder, chart.frame, marksOf(profile, chart.frame.yAt(plot.y + kLane / 2)), input.focus, theme);
        drawCutOff(builder, profile, chart.frame, theme);
        drawWinners(builder, input, profile, chart.frame, theme);
        builder.popClip();
        return finishChart(chart, input, viewport, true);
    }

    std::string conclude(const ViewInput& input, const ParameterValues& options) const override {
        const Profile profile = profileOf(input, *activePane(input), options);
        if (std::isnan(profile.cutOff)) return "No token is kept for its score: protection fills the budget";
        // How many kept tokens lie in the first half: few if the policy follows recency.
        const std::size_t half = profile.scores.size() / 2;
        const auto keptUntil = [&](auto end) { return std::count_if(profile.states.begin(), end, isKept); };
        const auto early = keptUntil(profile.states.begin() + static_cast<std::ptrdiff_t>(half)),
                   all = keptUntil(profile.states.end());
        const std::string score = formatShort(profile.cutOff);
        return fmt::format("{}; {} of {} {} in the first half of the tokens before the cut",
                           profile.evictedAbove == 0
                               ? fmt::format("Tokens with a score of {} or more are kept", score)
                               : fmt::format("The smallest kept score is {}, with {} at or above it", score,
                                             formatCounted(profile.evictedAbove, "evicted token")),
                           formatCount(early), formatCounted(all, "kept token"), early == 1 ? "lies" : "lie");
    }

    ViewTable table(const ViewInput& input, const ParameterValues& options) const override {
        const std::vector<std::string> columns = {"token", "text", "score", "state"};
        if (!whyNoPicture(input, options).empty()) return tableOf(columns, {});
        const Profile profile = profileOf(input, *activePane(input), options);
        return tableOf(columns, std::ssize(profile.scores), [profile, input](std::int64_t row) {
            return tableRow(row, tokenText(input, static_cast<TokenIndex>(row)), profile.scores[row],
                            stateName(profile.states[row]));
        });
    }
};

} // namespace

const View& tokenProfileView() { return onlyOne<TokenProfileView>(); }

} // namespace kvscope
