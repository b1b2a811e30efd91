// SubGen promises sublinear memory if keys form few clusters. The view shows the clusters, their growth with the stream
// and with the radius, and the reservoirs.
#include "core/parameters/parameter_rows.h"
#include "views/clustering/clustering_pictures.h"
#include "views/common/pane_offers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace kvscope {

namespace {

ParameterTable makeOptions() {
    return {
        choiceRow("picture", "Picture",
                  {{"overview", "Overview", "clusters on two principal axes, m over time, sizes"},
                   {"births", "m over time", "clusters opened while the stream is read"},
                   {"sizes", "Sizes and radii", "tokens and width of every cluster"},
                   {"reservoir", "Reservoirs", "what every slot holds, and how old it is"},
                   {"sampling", "Sampling", "realised against ideal counts of the value reservoir"},
                   {"delta", "m against δ", "clusters at other radii: keys, keys before RoPE, values"},
                   {"radius", "Radius against k", "covering radius of k greedy centres"}},
                  Stage::Features, "Which plot. The last two need no policy.",
                  "SubGen Algorithm 1, Definition 1, Corollary 1, Fig. 1"),
        choiceRow("balls", "Circles",
                  {{"plane", "Members in the plane", "as far as its members lie in this plane"},
                   {"head", "Radius in the head",
                    "max ‖k − x‖, which holds all its members: in many dimensions most of the picture"},
                   {"none", "None", "representatives alone"}},
                  Stage::Select, "What is drawn around a representative in the overview.", "SubGen Algorithm 1"),
        flagRow("tint", "Voronoi tint", false, Stage::Select,
                "Tints the overview's plane by the representative or centre that is nearest in it, which need not "
                "be the nearest in the head.",
                "SubGen Fig. 1"),
        choiceRow("delta_scale", "δ in",
                  {{"relative", "Median distances",
                    "of the distances between 512 of the same vectors, sampled evenly spaced, so that keys and values "
                    "compare"},
                   {"absolute", "Own units", "as the policy takes it"}},
                  Stage::Select, "Unit of the radius in the picture m against δ.", "this program's")};
}

/// The overview: clusters on the left, two plots stacked on the right; in little room the clusters alone.
PlotFrame drawOverview(ClusteringPainter& painter, const ClusteringData& data, const Box& area) {
    if (area.width < 460 || area.height < 200) return painter.plane(area);
    const double side = std::min(0.36 * area.width, 320.0), half = (area.height - 8) / 2;
    const Box top{area.right() - side, area.y, side, half}, bottom{top.x, area.y + half + 8, side, half};
    if (data.stream)
        painter.births(top);
    else
        painter.cover(top);
    painter.sizes(bottom);
    return painter.plane({area.x, area.y, area.width - side - 10, area.height});
}

PlotFrame drawSizes(ClusteringPainter& painter, const ClusteringData& data, const Box& area) {
    if (!data.stream || area.width < 460) return painter.sizes(area);
    painter.radii({area.x + area.width / 2 + 5, area.y, area.width / 2 - 5, area.height});
    return painter.sizes({area.x, area.y, area.width / 2 - 5, area.height});
}

PlotFrame drawPicture(ClusteringPainter& painter, const ClusteringData& data, const std::string& picture,
                      const Box& area) {
    if (picture == "births") return painter.births(area);
    if (picture == "sizes") return drawSizes(painter, data, area);
    if (picture == "reservoir") return painter.reservoir(area);
    if (picture == "sampling") return painter.sampling(area);
    if (picture == "delta") return painter.delta(area);
    return picture == "radius" ? painter.cover(area) : drawOverview(painter, data, area);
}

std::string deltaFinding(const ClusteringData& data) {
    constexpr double kToldRadius = 0.8; // of the median distance
    std::vector<std::string> parts;
    for (const auto& curve : data.curves) {
        const std::string tooMany = fmt::format("{} more than {}", curve.source, formatCount(data.most));
        for (std::size_t i = 0; i < curve.radius.size(); ++i)
            if (std::abs(curve.radius[i] - kToldRadius) < 1e-9)
                parts.push_back(curve.clusters[i] > 0
                                    ? fmt::format("{} {}", curve.source, formatCount(curve.clusters[i]))
                                    : tooMany);
        // A count that stopped at a wider radius has no value at this one, and narrower radii have more clusters.
        if (!curve.radius.empty() && curve.radius.front() > kToldRadius + 1e-9 && curve.clusters.front() == 0)
            parts.push_back(tooMany);
    }
    return parts.empty() ? "Counting clusters from wide to narrow radii"
                         : fmt::format("At 0.8 of the {} {} into so many clusters: {}", medianWords(data),
                                       formatCounted(data.cut, "token") + (data.cut == 1 ? " falls" : " fall"),
                                       fmt::join(parts, ", "));
}

std::string coverFinding(const ClusteringData& data) {
    if (data.coverRadius.empty()) return "No centre was chosen: recent tokens fill the budget";
    const double first = data.coverRadius.front();
    if (first == 0) return "All keys are equal: one centre lies on each of them";
    const auto half = std::ranges::find_if(data.coverRadius, [&](double r) { return r <= first / 2; });
    const std::string rest =
        half == data.coverRadius.end()
            ? fmt::format("even {} not halve the radius",
                          std::ssize(data.coverRadius) == 1
                              ? "1 centre does"
                              : formatCounted(std::ssize(data.coverRadius), "centre") + " do")
            : fmt::format("{} centres halve the radius", formatCount(half - data.coverRadius.begin() + 1));
    return fmt::format("From {} with one centre to {} with {}: {}", formatShort(first),
                       formatShort(data.coverRadius.back()), formatCount(std::ssize(data.coverRadius)), rest);
}

std::string streamFinding(const SubgenLog::Head& stream, const StreamState& state, const std::string& picture) {
    if (picture == "sampling") {
        const Sampling sampling = samplingOf(stream, state);
        if (sampling.degrees() == 0) return "There are too few tokens for two bins: a χ² needs more";
        return fmt::format("χ² = {} over {} bins ({} degrees of freedom): {} what fair draws give",
                           formatShort(sampling.chiSquare), sampling.bins.size(), sampling.degrees(),
                           sampling.chiSquare <= static_cast<double>(sampling.degrees()) +
                                                     3 * std::sqrt(2.0 * static_cast<double>(sampling.degrees()))
                               ? "within"
                               : "beyond");
    }
    if (picture == "reservoir") {
        double held = 0, ideal = 0;
        std::int64_t slots = 0;
        for (const TokenIndex token : state.valueSlots)
            if (token >= 0) {
                held += state.read - token;
                ++slots;
            }
        for (TokenIndex token = 0; token < state.read && state.mu > 0; ++token)
            ideal += stream.valueProbability[token] * stream.mu / state.mu * (state.read - token);
        return fmt::format("Value slots hold tokens {} back on average, ideal sampling {}",
                           slots > 0 ? formatShort(held / static_cast<double>(slots)) : "0", formatShort(ideal));
    }
    const auto single = std::ranges::count(state.counts, 1);
    SubgenLog::Head soFar; // only the tokens read so far, as in the rest of the sentence
    soFar.representatives = stream.representatives;
    soFar.cluster.assign(stream.cluster.begin(), stream.cluster.begin() + state.read);
    const double exponent = growthExponent(soFar);
    return fmt::format(
        "{} for {} at δ = {}, {} of them of one token{}",
        formatCounted(static_cast<std::int64_t>(state.clusters), "cluster"), formatCounted(state.read, "token"),
        formatShort(stream.delta), formatCount(single),
        std::isnan(exponent) ? "" : fmt::format("; m grows like n^{} over the second half", formatFixed(exponent, 2)));
}

std::string agesOf(const std::vector<TokenIndex>& slots, TokenIndex read) {
    std::vector<std::string> ages;
    for (std::size_t i = 0; i < slots.size() && i < 6; ++i)
        ages.push_back(fmt::format("{} ({})", formatCount(slots[i]), formatCount(read - slots[i])));
    return fmt::format("{}{}", fmt::join(ages, ", "), slots.size() > 6 ? " …" : "");
}

PointFacts clusterFacts(const ViewInput& input, const ClusteringData& data, std::int64_t index) {
    PointFacts facts;
    if (data.stream) {
        const StreamState state = streamState(*data.stream, input.cursor);
        const auto c = static_cast<std::size_t>(index);
        if (index < 0 || c >= state.clusters) return {};
        facts.token = data.stream->representatives[c];
        facts.rows = {
            {"cluster",
             fmt::format("{} of {}", formatCount(index + 1), formatCount(static_cast<std::int64_t>(state.clusters)))},
            {"representative", quotedToken(input, facts.token)},
            {"tokens", formatCount(state.counts[c])},
            {"radius", fmt::format("{} of δ = {}", formatShort(state.radii[c]), formatShort(data.stream->delta))},
            {"slots (age)", agesOf(state.clusterSlots[c], state.read)}};
    } else if (data.centres && index >= 0 && index < std::ssize(data.centres->order)) {
        facts.token = data.centres->order[index];
        facts.rows = {
            {"centre", fmt::format("{} of {}", formatCount(index + 1), formatCount(std::ssize(data.centres->order)))},
            {"token", quotedToken(input, facts.token)},
            {"radius after it", formatShort(data.centres->radius[index])},
            {"nearest keys", formatCount(data.centres->cellSize[index])}};
    }
    return facts;
}

PointFacts tokenFacts(const ClusteringData& data, TokenIndex token) {
    PointFacts facts;
    facts.token = token;
    if (!data.stream || token < 0 || static_cast<std::size_t>(token) >= data.stream->cluster.size()) return facts;
    const auto c = static_cast<std::size_t>(data.stream->cluster[token]);
    facts.rows = {{"cluster", formatCount(static_cast<std::int64_t>(c) + 1)},
                  {"distance", fmt::format("{} of δ = {}", formatShort(data.stream->distances[token]),
                                           formatShort(data.stream->delta))},
                  {"‖v‖²/μ", formatShort(data.stream->valueProbability[token])}};
    return facts;
}

PointFacts samplingFacts(const ClusteringData& data, const StreamState& state, std::int64_t index) {
    const Sampling sampling = samplingOf(*data.stream, state);
    if (index < 0 || index >= std::ssize(sampling.bins)) return {};
    const SamplingBin& bin = sampling.bins[index];
    PointFacts facts;
    facts.rows = {
        {"tokens", formatCount(bin.tokens)},
        {"‖v‖²/μ each", fmt::format("{} to {}", formatShort(bin.leastProbability), formatShort(bin.mostProbability))},
        {"slots, realised", formatCount(bin.realised)},
        {"slots, ideal", formatShort(bin.ideal * static_cast<double>(sampling.drawn))}};
    return facts;
}

std::vector<std::vector<std::string>> curveRows(const ClusteringData& data) {
    std::vector<std::vector<std::string>> rows;
    for (const auto& curve : data.curves)
        for (std::size_t i = 0; i < curve.radius.size(); ++i)
            rows.push_back({curve.source, fmt::format("{:.2f}", curve.radius[i]),
                            fmt::format("{:.6g}", curve.radius[i] * curve.median),
                            curve.clusters[i] > 0 ? std::to_string(curve.clusters[i]) : fmt::format(">{}", data.most),
                            data.medianRows < data.cut ? fmt::format("{} sampled rows", data.medianRows) : "all rows"});
    return rows;
}

class ClusteringView final : public View {
public:
    ClusteringView()
        : View({.id = "clustering",
                .name = "Clustering",
                .summary = "SubGen's clusters, reservoirs and greedy centres, and how their number grows",
                .paper = "SubGen Algorithm 1, Definition 1, Corollary 1, Fig. 1",
                .group = ViewGroup::Algorithm,
                .needs = {{"balls", {{"picture", {"overview"}}}},
                          {"tint", {{"picture", {"overview"}}}},
                          {"delta_scale", {{"picture", {"delta"}}}}},
                .data = "clustering",
                .waiting = "Computing the clusters…",
                .teaching = TeachingRole::Steps},
               makeOptions()) {}

    Scene draw(const ViewInput& input, const ParameterValues& options, const Viewport& viewport) const override {
        const auto data = dataAs<ClusteringData>(input);
        const std::string& picture = options.choice("picture");
        Scene scene = blankScene(viewport);
        SceneBuilder builder(scene, *viewport.text);
        ClusteringPainter painter(builder, input, options, viewport, *data);
        const std::vector<LegendEntry> legend = painter.legend(picture);
        const PlotFrame frame = drawPicture(painter, *data, picture, plotArea(viewport, legend));
        drawTopLegend(builder, viewport, legend, frame.plot.x);
        drawProvenance(builder, input, viewport);
        scene.plot = frame.plot;
        if (picture == "overview") setDataRange(scene, frame); // two linear axes: worth zooming
        return scene;
    }

    std::string conclude(const ViewInput& input, const ParameterValues& options) const override {
        const auto data = dataAs<ClusteringData>(input);
        const std::string& picture = options.choice("picture");
        if (picture == "delta") return deltaFinding(*data);
        return data->stream ? streamFinding(*data->stream, streamState(*data->stream, input.cursor), picture)
                            : coverFinding(*data);
    }

    ViewTable table(const ViewInput& input, const ParameterValues& options) const override {
        const auto data = dataAs<ClusteringData>(input);
        const std::string& picture = options.choice("picture");
        std::vector<std::vector<std::string>> rows;
        if (picture == "delta") {
            if (data) rows = curveRows(*data);
            return tableOf({"source", "radius_in_medians", "radius", "clusters", "median_of"}, std::move(rows));
        }
        if (data && data->stream) {
            const StreamState state = streamState(*data->stream, input.cursor);
            for (std::size_t c = 0; c < state.clusters; ++c)
                rows.push_back(tableRow(c, data->stream->representatives[c],
                                        tokenText(input, data->stream->representatives[c]), state.counts[c],
                                        fmt::format("{:.6g}", state.radii[c]),
                                        fmt::format("{}", fmt::join(state.clusterSlots[c], " "))));
            return tableOf({"cluster", "representative", "text", "tokens", "radius", "slots"}, std::move(rows));
        }
        for (std::size_t i = 0; data && i < data->coverOrder.size(); ++i) {
            const bool inBudget = data->centres && i < data->centres->cellSize.size();
            rows.push_back(tableRow(i + 1, data->coverOrder[i], tokenText(input, data->coverOrder[i]),
                                    fmt::format("{:.6g}", data->coverRadius[i]),
                                    inBudget ? std::to_string(data->centres->cellSize[i]) : "-"));
        }
        return tableOf({"k", "centre", "text", "radius", "nearest_keys"}, std::move(rows));
    }

    std::optional<PaneOffer> offer(const ViewInput& input, const ParameterValues& options) const override {
        const std::string& picture = options.choice("picture");
        if (picture == "delta" || picture == "radius") return std::nullopt; // they depend on the keys, not on a policy
        if (picture == "reservoir" || picture == "sampling" || picture == "births")
            return offerPolicy(input, {PolicyFamily::Clusters});
        return offerPolicy(input, {PolicyFamily::Clusters, PolicyFamily::Centres});
    }

    StepSequence stepSequence(const ViewInput& input, const ParameterValues&) const override {
        const auto data = dataAs<ClusteringData>(input);
        return data && data->stream ? streamStepSequence(*data->stream) : StepSequence{};
    }

    std::string caption(const ViewInput& input, const ParameterValues&) const override {
        const auto data = dataAs<ClusteringData>(input);
        return data && data->stream ? streamCaption(input, *data->stream) : std::string();
    }

    PointFacts inspect(const ViewInput& input, const ParameterValues& options, const Scene& scene,
                       Point at) const override {
        const auto data = dataAs<ClusteringData>(input);
        const PickId pick = pickAt(scene, at, 4);
        if (pick.kind == PickId::Kind::None) return {};
        if (pick.kind == PickId::Kind::Token) return tokenFacts(*data, static_cast<TokenIndex>(pick.index));
        if (pick.index == -3 && data->coverRadius.empty()) return {}; // an empty plot has the same pick
        if (pick.index == -3 && scene.plot.width > 0 && options.choice("picture") == "radius") {
            const double last = std::max<double>(2, static_cast<double>(data->coverRadius.size()));
            const double k = std::exp(std::log(last) * (at.x - scene.plot.x) / scene.plot.width);
            const auto i =
                static_cast<std::size_t>(std::clamp(k, 1.0, static_cast<double>(data->coverRadius.size()))) - 1;
            PointFacts facts;
            facts.rows = {{"k", formatCount(static_cast<std::int64_t>(i) + 1)},
                          {"radius", formatShort(data->coverRadius[i])},
                          {"last centre", quotedToken(input, data->coverOrder[i])}};
            facts.token = data->coverOrder[i];
            return facts;
        }
        if (options.choice("picture") == "sampling" && data->stream)
            return samplingFacts(*data, streamState(*data->stream, input.cursor), pick.index);
        return clusterFacts(input, *data, pick.index);
    }
};

} // namespace

const View& clusteringView() { return onlyOne<ClusteringView>(); }

} // namespace kvscope
