// Reads a Compactor result as points and a line: the standardised scores are the coordinates, and because the score is
// their weighted sum, all tokens of one score lie on one line of slope -1/lambda.
#include "views/score_plane/score_plane.h"

#include "core/policies/policy.h"
#include "core/run/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace kvscope {

namespace {

constexpr double kMostLambda = 3; // of the policy's parameter

std::vector<float> rowOf(const HostTensor& table, KvHeadIndex head) {
    const std::int64_t width = table.shape[1];
    const auto begin = table.data.begin() + head.value * width;
    return {begin, begin + width};
}

double lambdaOf(const RunResult& result) {
    const ParameterValues& values = result.request.policy.values;
    if (values.choice("lambda_rule") == "removed") return 1 - retentionOf(result.request.budget, result.visible);
    return values.real("lambda");
}

double thresholdOf(const ScorePlane& plane) {
    double worstKept = std::numeric_limits<double>::infinity(), bestEvicted = -worstKept;
    for (std::size_t i = 0; i < plane.total.size(); ++i) {
        const auto score = static_cast<double>(plane.total[i]);
        if (!plane.marks.hasPlace(static_cast<TokenIndex>(i))) continue;
        if (plane.marks.states[i] == TokenState::Kept) worstKept = std::min(worstKept, score);
        if (plane.marks.states[i] == TokenState::Evicted) bestEvicted = std::max(bestEvicted, score);
    }
    if (std::isinf(worstKept)) return NAN;
    return std::isinf(bestEvicted) ? worstKept : (worstKept + bestEvicted) / 2;
}

/// The `count` free tokens with the largest values, ties to the earlier token, as a mask.
std::vector<bool> bestOf(const ScorePlane& plane, std::int64_t count, double Point::*coordinate) {
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < plane.total.size(); ++i)
        if (plane.marks.states[i] != TokenState::Protected && plane.marks.hasPlace(static_cast<TokenIndex>(i)))
            order.push_back(i);
    std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
        return plane.marks.places[a].*coordinate > plane.marks.places[b].*coordinate;
    });
    std::vector<bool> best(plane.total.size(), false);
    for (std::size_t i = 0; i < order.size() && static_cast<std::int64_t>(i) < count; ++i) best[order[i]] = true;
    return best;
}

} // namespace

std::string whyNoPlane(const ViewInput& input) {
    const PaneData* pane = activePane(input);
    if (!pane) return input.capture ? "No policy is shown. Add Compactor." : kNoCapture;
    if (const std::string why = whyEmpty(input, pane); !why.empty()) return why;
    if (familyOf(pane->policyId) != PolicyFamily::Compactor || pane->result->request.recorded)
        return fmt::format("The score plane shows Compactor's two scores, and pane {} is {}. Choose Compactor there, "
                           "or activate a pane "
                           "that has it.",
                           pane->letter, pane->policyName);
    if (!pane->result->parts.contains("z_attention"))
        return "All tokens are among those that Compactor skips, so none has a score. Lower its skipped tokens, or "
               "choose a later cut.";
    return {};
}

ScorePlane scorePlaneOf(const ViewInput& input) {
    const PaneData& pane = *activePane(input);
    const RunResult& result = *pane.result;
    const std::vector<float> x = rowOf(result.parts.at("z_attention"), input.kvHead);
    const std::vector<float> y = rowOf(result.parts.at("z_leverage"), input.kvHead);
    ScorePlane plane;
    plane.total = rowOf(result.scores, input.kvHead);
    plane.marks.states = tokenStates(input, pane);
    plane.marks.states.resize(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
        plane.marks.places.push_back({static_cast<double>(x[i]), static_cast<double>(y[i])});
        plane.unplaced += plane.marks.hasPlace(static_cast<TokenIndex>(i)) ? 0 : 1;
    }
    plane.lambda = lambdaOf(result);
    plane.threshold = thresholdOf(plane);
    return plane;
}

Deciders decidersOf(const ScorePlane& plane) {
    Deciders deciders;
    std::vector<std::size_t> kept;
    for (std::size_t i = 0; i < plane.total.size(); ++i)
        if (plane.marks.states[i] == TokenState::Kept && plane.marks.hasPlace(static_cast<TokenIndex>(i)))
            kept.push_back(i);
    deciders.kept = std::ssize(kept);
    const std::vector<bool> attention = bestOf(plane, deciders.kept, &Point::x);
    const std::vector<bool> leverage = bestOf(plane, deciders.kept, &Point::y);
    for (const std::size_t token : kept) {
        deciders.byAttention += attention[token] ? 1 : 0;
        deciders.byLeverage += leverage[token] ? 1 : 0;
        deciders.byBoth += attention[token] && leverage[token] ? 1 : 0;
    }
    return deciders;
}

std::optional<double> lambdaThrough(const ScorePlane& plane, Point at) {
    if (!plane.hasLine() || std::abs(at.y) < 1e-3) return std::nullopt;
    return std::clamp((plane.threshold - at.x) / at.y, 0.0, kMostLambda);
}

std::int64_t budgetThrough(const ScorePlane& plane, Point at) {
    const double score = at.x + plane.lambda * at.y;
    std::int64_t count = 0;
    for (std::size_t i = 0; i < plane.total.size(); ++i) {
        const bool guarded = plane.marks.states[i] == TokenState::Protected;
        const Point& place = plane.marks.places[i];
        const bool beyond =
            plane.marks.hasPlace(static_cast<TokenIndex>(i)) && place.x + plane.lambda * place.y >= score;
        count += guarded || beyond ? 1 : 0;
    }
    return std::max<std::int64_t>(1, count);
}

std::vector<Point> lineInside(const ScorePlane& plane, const PlotFrame& frame) {
    if (!plane.hasLine()) return {};
    const AxisSpec &x = frame.x, &y = frame.y;
    // From the lower edge to the upper one: x falls from `low` to `high` because lambda is not negative.
    Point low{plane.threshold - plane.lambda * y.low, y.low}, high{plane.threshold - plane.lambda * y.high, y.high};
    const auto at = [&](double where) { return Point{where, (plane.threshold - where) / plane.lambda}; };
    if (low.x < x.low || high.x > x.high) return {};
    if (low.x > x.high) low = at(x.high);
    if (high.x < x.low) high = at(x.low);
    return {low, high};
}

} // namespace kvscope
