// Cosines and norms of keys and queries as distributions, and two statements of KeyDiff held against every query.
#include "core/parameters/parameter_rows.h"
#include "views/common/view_facts.h"
#include "views/common/view_options.h"
#include "views/geometry/geometry_painter.h"
#include "views/scene/axes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace kvscope {

namespace {

ParameterTable makeOptions() {
    constexpr const char* source = "KeyDiff Figs. 12 to 16, Thms 3.2, C.1; BalanceKV Table 3";
    return {choiceRow("figure", "Figure",
                      {{"cosines", "Cosine to the mean", "KeyDiff Fig. 13, every token"},
                       {"means", "Mean key, mean query", "KeyDiff Fig. 14, every query head"},
                       {"norms", "Norms", "KeyDiff Fig. 15, every token"},
                       {"distinct", "Most distinct key", "KeyDiff Fig. 16, every query head"},
                       {"log_det", "log det of kept keys", "KeyDiff Fig. 12, every KV head, all panes"},
                       {"table3", "BalanceKV Table 3", "norms of queries, shifted keys and values"},
                       {"lemma", "Theorem C.1",
                        "KeyDiff: weight against cosine, with the bound; Lemma 3.1 is its limit for many tokens"},
                       {"theorem", "Theorem 3.2", "KeyDiff: cosine of mean and top key, with the bound"}},
                      Stage::Features, "Which statistics are shown.", source),
            choiceRow("scope", "Scope",
                      {{"model", "All layers", "of the capture, one by one"},
                       {"layer", "The layer", "all its heads"},
                       {"head", "This head", "the KV head and the query heads that read it"}},
                      Stage::Features, "Whose vectors are counted; the two theorems look at one query head.", source)};
}

std::string scatterFinding(const GeometryData& data) {
    const bool lemma = data.figure == "lemma";
    const auto holding =
        std::ranges::count_if(data.points, [&](const TheoremPoint& p) { return holdsBound(p, lemma); });
    double gap = INFINITY;
    std::int64_t premise = 0;
    for (const TheoremPoint& p : data.points) {
        gap = std::min(gap, lemma ? p.cosKey - p.leastCosKey : p.mostCosMeanKey - p.cosMeanKey);
        premise += p.premiseHolds() ? 1 : 0;
    }
    const std::string taken = data.takenWords();
    std::string text = fmt::format(
        "{} of {}{} {} within the bound of {} here; the closest point is {} away from its bound", formatCount(holding),
        formatCounted(std::ssize(data.points), "query"), taken.empty() ? "" : ", " + taken + ",",
        data.points.size() == 1 ? "lies" : "lie", lemma ? "Theorem C.1" : "Theorem 3.2", formatShort(gap));
    if (!lemma) text += fmt::format("; its premise a < 0 < b holds for {}", formatCount(premise));
    return data.leftOut > 0 ? text + fmt::format("; {} with weight 1 left out", formatCounted(data.leftOut, "query"))
                            : text;
}

PointFacts scatterFacts(const ViewInput& input, const GeometryData& data, const Scene& scene, Point at) {
    const PickId pick = pickAt(scene, at, 4);
    if (pick.kind != PickId::Kind::Cell || std::cmp_greater_equal(pick.index, data.points.size())) return {};
    const TheoremPoint& p = data.points[pick.index];
    PointFacts facts;
    facts.token = p.key;
    facts.rows = {{"query", quotedToken(input, p.query)},
                  {"key k*", quotedToken(input, p.key)},
                  {"weight w", formatShort(p.weight)}};
    if (data.figure == "lemma") {
        facts.rows.emplace_back("cos(k*, q)", formatFixed(p.cosKey, 4));
        facts.rows.emplace_back("at least", formatFixed(p.leastCosKey, 4));
        facts.rows.emplace_back("M", formatShort(p.squaredNorm));
    } else {
        facts.rows.emplace_back("a = cos(mean key, q)", formatFixed(p.cosMean, 4));
        facts.rows.emplace_back("b = cos(k*, q)", formatFixed(p.cosKey, 4));
        facts.rows.emplace_back("cos(mean key, k*)", formatFixed(p.cosMeanKey, 4));
        facts.rows.emplace_back("at most", formatFixed(p.mostCosMeanKey, 4));
    }
    return facts;
}

std::vector<std::vector<std::string>> pointRows(const ViewInput& input, const GeometryData& data) {
    std::vector<std::vector<std::string>> rows;
    for (const TheoremPoint& p : data.points)
        rows.push_back(tableRow(p.query, p.key, tokenText(input, p.key), p.weight, p.cosKey, p.leastCosKey, p.cosMean,
                                p.cosMeanKey, p.mostCosMeanKey, p.premiseHolds() ? "yes" : "no"));
    return rows;
}

class GeometryView final : public View {
public:
    GeometryView()
        : View({.id = "geometry",
                .name = "Geometry statistics",
                .summary = "Where keys and queries point and how long they are, and two bounds held against them",
                .paper = "KeyDiff Figs. 12 to 16, Theorems 3.2 and C.1; BalanceKV Table 3",
                .group = ViewGroup::Why,
                .needs = {{"scope", {{"figure", choicesBut(makeOptions(), "figure", {"lemma", "theorem"})}}}},
                .data = "geometry",
                .waiting = "Measuring the first layer…"},
               makeOptions()) {}

    std::string whyNoPicture(const ViewInput& input, const ParameterValues& options) const override {
        if (const std::string why = View::whyNoPicture(input, options); !why.empty()) return why;
        const auto data = dataAs<GeometryData>(input);
        if (!data->isScatter() && data->series.empty()) return card().waiting;
        if (data->isScatter() && data->points.empty())
            return "Every evaluation query of this head gives one key all of its weight up to rounding: the bound has "
                   "no point. Choose another query head.";
        return "";
    }

    Scene draw(const ViewInput& input, const ParameterValues&, const Viewport& viewport) const override {
        const auto data = dataAs<GeometryData>(input);
        return data->isScatter() ? geometryScatter(*data, input, viewport) : geometryHistogram(*data, input, viewport);
    }

    std::string conclude(const ViewInput& input, const ParameterValues&) const override {
        const auto data = dataAs<GeometryData>(input);
        if (data->isScatter()) return scatterFinding(*data);
        if (data->figure == "means") {
            const std::vector<double>& numbers = data->series.front().numbers;
            const auto negative = std::ranges::count_if(numbers, [](double n) { return n < 0; });
            return fmt::format("cos(mean key, mean query) is negative in {} of {}, {} on average ({})", negative,
                               formatCounted(std::ssize(numbers), "query head"),
                               formatShort(data->series.front().histogram.summary().mean), data->where);
        }
        std::string text;
        const std::vector<std::string> means = meanTexts(*data);
        for (std::size_t i = 0; i < means.size(); ++i)
            text += fmt::format("{}{} {}", text.empty() ? "" : ", ", data->series[i].name, means[i]);
        const bool spread = text.find("±") != std::string::npos; // one number, the log det of one head, has none
        return fmt::format("{}{} ({})", spread ? "Means with 95 % intervals: " : "", text, data->where);
    }

    ViewTable table(const ViewInput& input, const ParameterValues&) const override {
        const auto data = dataAs<GeometryData>(input);
        if (data && data->isScatter())
            return tableOf({"query", "key", "text of the key", "weight", "cos(k*, q)", "at least (Thm C.1)",
                            "cos(mean key, q)", "cos(mean key, k*)", "at most (Thm 3.2)", "premise of Thm 3.2"},
                           pointRows(input, *data));
        std::vector<std::vector<std::string>> rows;
        for (std::size_t s = 0; data && s < data->series.size(); ++s) {
            const GeometrySeries& series = data->series[s];
            const Summary summary = series.histogram.summary();
            rows.push_back(
                tableRow(series.name, "mean and half interval", summary.mean, summary.halfInterval(), summary.count));
            for (std::size_t bin = 0; bin < series.histogram.counts().size(); ++bin) {
                const double left = series.histogram.low() + series.histogram.binWidth() * static_cast<double>(bin);
                rows.push_back(tableRow(series.name, "bin from, to", left, left + series.histogram.binWidth(),
                                        series.histogram.counts()[bin]));
            }
        }
        return tableOf({"quantity", "row", "from or mean", "to or half interval", "count"}, std::move(rows));
    }

    PointFacts inspect(const ViewInput& input, const ParameterValues&, const Scene& scene, Point at) const override {
        const auto data = dataAs<GeometryData>(input);
        if (!scene.plot.contains(at)) return {};
        if (data->isScatter()) return scatterFacts(input, *data, scene, at);
        const double value = scene.dataAt(at).x;
        PointFacts facts;
        facts.rows = {{data->axis, formatShort(value)}};
        for (const GeometrySeries& series : data->series) {
            const double bin = (value - series.histogram.low()) / series.histogram.binWidth();
            const auto& counts = series.histogram.counts();
            const std::int64_t count =
                bin >= 0 && bin < static_cast<double>(counts.size()) ? counts[static_cast<std::size_t>(bin)] : 0;
            facts.rows.emplace_back(series.name, fmt::format("{} of {}", formatCount(count),
                                                             formatCount(series.histogram.summary().count)));
        }
        return facts;
    }
};

} // namespace

const View& geometryView() { return onlyOne<GeometryView>(); }

} // namespace kvscope
