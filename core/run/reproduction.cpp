// A reproduction is a sweep whose rows are gathered into points: every point the mean of its samples with a 95 %
// interval, over captures where there are several.
#include "core/run/reproduction.h"

#include "core/base/error.h"
#include "core/policies/compactor_log.h"
#include "core/run/selection_formats.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace kvscope {

namespace {

const std::map<std::string, std::string>& ownMeasures() {
    static const std::map<std::string, std::string> labels = {
        {"policy_ms", "Time of the policy, ms"},
        {"spectral_drawn", "Spectral distortion of drawn rows"},
        {"spectral_top", "Spectral distortion of the best rows"}};
    return labels;
}

std::string labelOf(const std::string& measure) {
    const auto own = ownMeasures().find(measure);
    return own == ownMeasures().end() ? measureById(measure).label : own->second;
}

/// The same run once more with its steps written down, where drawing leaves its distortions.
std::vector<double> spectralDistortions(const LayerRunner& runner, RunRequest request, bool drawn) {
    request.recordSteps = true;
    request.measure = false;
    const auto log = std::dynamic_pointer_cast<const LeverageLog>(runner.run(request, {})->log);
    if (!log)
        return {};
    return drawn ? log->distortion : log->topDistortion;
}

/// Samples of one point, apart for each capture.
struct Samples {
    double x = 0;
    std::int64_t rows = 0;
    std::string text;
    std::map<const CaptureReader*, std::vector<double>> values;
};

class Gathered {
public:
    explicit Gathered(const Reproduction& reproduction) : m_reproduction(reproduction) {}

    void add(const LayerRunner& runner, const SweepRow& row) {
        for (const std::string& measure : m_reproduction.measures)
            if (const std::vector<double> values = samplesOf(runner, *row.result, measure); !values.empty())
                addSamples(row, measure, values);
    }

    std::vector<ReproducedSeries> series(bool overCaptures) const {
        std::vector<ReproducedSeries> all;
        for (const auto& [key, points] : m_points) {
            ReproducedSeries one{key.second, key.first, {}, {}};
            one.measure = m_measureOf.at(key);
            for (const Samples& samples : points)
                one.points.push_back({samples.x, samples.text, summary(samples, overCaptures)});
            if (m_reproduction.axis != ReproductionAxis::Parameter)
                std::sort(one.points.begin(), one.points.end(), [](const auto& a, const auto& b) { return a.x < b.x; });
            all.push_back(std::move(one));
        }
        return all;
    }

private:
    using Key = std::pair<std::string, std::string>; ///< policy, label

    std::vector<double> samplesOf(const LayerRunner& runner, const RunResult& result,
                                  const std::string& measure) const {
        if (measure == "policy_ms")
            return {result.times.featuresMs + result.times.combineMs + result.times.selectMs};
        if (measure == "spectral_drawn" || measure == "spectral_top") {
            const auto heads = spectralDistortions(runner, result.request, measure == "spectral_drawn");
            return m_reproduction.overHeads || heads.empty() ? heads : std::vector<double>{meanOfNumbers(heads)};
        }
        if (!result.fidelity || (measureById(measure).need == MeasureNeed::Scores && result.scores.empty()))
            return {};
        const std::vector<std::string> ids = {measure};
        const MeasureValues values = runner.measure(result, ids, {}).front();
        return m_reproduction.overHeads ? values.perHead : std::vector<double>{values.mean()};
    }

    void addSamples(const SweepRow& row, const std::string& measure, const std::vector<double>& values) {
        const RunRequest& run = row.result->request;
        const VariedParameter& varied = m_reproduction.varied;
        std::string label = run.policy.policy;
        if (!varied.id.empty() && m_reproduction.axis != ReproductionAxis::Parameter)
            label += " " + varied.id + "=" + run.policy.values.text(varied.id);
        if (m_reproduction.measures.size() > 1)
            label += " " + measure;
        const Key key{run.policy.policy, label};
        m_measureOf[key] = measure;
        std::vector<Samples>& points = m_points[key];
        const std::string text = placeOf(run);
        auto at = std::find_if(points.begin(), points.end(), [&](const Samples& s) { return s.text == text; });
        if (at == points.end())
            at = points.insert(points.end(), Samples{0, 0, text, {}});
        // A budget's points stand at the retention that was realised, on average.
        at->x = (at->x * static_cast<double>(at->rows) + xOf(row)) / static_cast<double>(at->rows + 1);
        at->rows += 1;
        std::vector<double>& samples = at->values[run.capture.get()];
        samples.insert(samples.end(), values.begin(), values.end());
    }

    std::string placeOf(const RunRequest& run) const {
        switch (m_reproduction.axis) {
        case ReproductionAxis::Layer:
            return std::to_string(run.layer.value);
        case ReproductionAxis::Tokens:
            return std::to_string(run.capture->info().numTokens);
        case ReproductionAxis::Parameter:
            return run.policy.values.text(m_reproduction.varied.id);
        case ReproductionAxis::Retention:
            break;
        }
        return run.budget.text();
    }

    double xOf(const SweepRow& row) const {
        const RunRequest& run = row.result->request;
        switch (m_reproduction.axis) {
        case ReproductionAxis::Layer:
            return run.layer.value;
        case ReproductionAxis::Tokens:
            return static_cast<double>(run.capture->info().numTokens);
        case ReproductionAxis::Parameter: {
            const auto& values = m_reproduction.varied.values;
            return static_cast<double>(std::find(values.begin(), values.end(), placeOf(run)) - values.begin());
        }
        case ReproductionAxis::Retention:
            break;
        }
        return row.retention;
    }

    static Summary summary(const Samples& samples, bool overCaptures) {
        std::vector<double> all;
        for (const auto& [capture, values] : samples.values) {
            if (overCaptures)
                all.push_back(meanOfNumbers(values));
            else
                all.insert(all.end(), values.begin(), values.end());
        }
        return summaryOf(all);
    }

    const Reproduction& m_reproduction;
    std::map<Key, std::vector<Samples>> m_points;
    std::map<Key, std::string> m_measureOf;
};

std::string xTitleOf(const Reproduction& reproduction) {
    switch (reproduction.axis) {
    case ReproductionAxis::Layer:
        return "Layer";
    case ReproductionAxis::Tokens:
        return "Tokens";
    case ReproductionAxis::Parameter:
        return reproduction.varied.id + ": " + fmt::format("{}", fmt::join(reproduction.varied.values, ", "));
    case ReproductionAxis::Retention:
        break;
    }
    return "Retention (fraction kept)";
}

SweepRequest sweepOf(const Reproduction& reproduction,
                     const std::vector<std::shared_ptr<const CaptureReader>>& captures, const std::vector<int>& layers,
                     std::vector<std::string>& notes) {
    SweepRequest request;
    request.captures = captures;
    request.layers = layers;
    request.cut = reproduction.cut;
    for (const std::string& spec : reproduction.policies) {
        const std::string id = spec.substr(0, spec.find_first_of(":,@"));
        const auto& known = allPolicies();
        const bool there = std::any_of(known.begin(), known.end(), [&](const Policy* p) { return p->card().id == id; });
        if (there)
            request.policies.push_back(PolicySpec::parse(spec));
        else
            notes.push_back("left out: this program has no policy '" + id + "'");
    }
    if (!reproduction.varied.id.empty()) {
        request.varied = {reproduction.varied};
        std::erase_if(request.policies,
                      [&](const PolicySpec& spec) { return !spec.values.has(reproduction.varied.id); });
    }
    for (const std::string& budget : reproduction.budgets)
        request.budgets.push_back(Budget::parse(budget));
    for (int seed = 1; seed < reproduction.seeds; ++seed)
        request.seeds.push_back(static_cast<std::uint64_t>(seed));
    return request;
}

} // namespace

ReproductionResult reproduce(const LayerRunner& runner, const Reproduction& reproduction,
                             const std::vector<std::shared_ptr<const CaptureReader>>& captures,
                             const std::vector<int>& layers, const Checkpoint& checkpoint) {
    if (!reproduction.elsewhere.empty())
        throw Error(
            {.sentence = "'" + reproduction.id + "' is not made here", .place = {}, .remedy = reproduction.elsewhere});
    ReproductionResult result;
    const SweepRequest request = sweepOf(reproduction, captures, layers, result.notes);
    Gathered gathered(reproduction);
    runSweep(runner, request, checkpoint, [&](const SweepRow& row) { gathered.add(runner, row); });
    result.series = gathered.series(captures.size() > 1);
    result.xTitle = xTitleOf(reproduction);
    const std::string& measure = reproduction.measures.front();
    result.yTitle = labelOf(measure);
    if (reproduction.measures.size() > 1)
        result.yTitle = fmt::format("{}", fmt::join(reproduction.measures, ", "));
    result.samples = captures.size() > 1 ? "captures" : reproduction.overHeads ? "heads" : "layers and seeds";
    for (const PolicySpec& spec : request.policies)
        result.notes.push_back("policy: " + spec.text());
    for (const auto& capture : captures)
        result.notes.push_back(fmt::format("data here: {}, {}, {} tokens, {} of {} layers", capture->info().fileName,
                                           capture->info().modelId, capture->info().numTokens,
                                           layers.empty() ? capture->info().layers.size() : layers.size(),
                                           capture->info().numLayers));
    result.notes.push_back("data of the paper: " + reproduction.paperData);
    result.notes.push_back(fmt::format("cut: {}; seeds: {}; intervals: 95 % over {}; outputs before W_o",
                                       reproduction.cut, reproduction.seeds, result.samples));
    return result;
}

std::string reproductionCsv(const Reproduction& reproduction, const ReproductionResult& result) {
    std::string text = "# " + reproduction.item + "\n";
    for (const std::string& note : result.notes)
        text += "# " + note + "\n";
    text += "series,policy,measure,x,x_text,mean,deviation,half_interval_95,samples\n";
    for (const ReproducedSeries& series : result.series)
        for (const ReproducedPoint& p : series.points)
            text += fmt::format("{},{},{},{},{},{},{},{},{}\n", series.label, series.policyId, series.measure,
                                shortest(p.x), p.xText, shortest(p.summary.mean), shortest(p.summary.deviation),
                                shortest(p.summary.halfInterval()), p.summary.count);
    return text;
}

} // namespace kvscope
