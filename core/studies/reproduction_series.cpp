// Averages the rows of a sweep into points: each row belongs to a series (policy, value of the varied parameter,
// measure) and to an x, and a point is the mean of its samples.
#include "core/studies/reproduction_series.h"

#include "core/metrics/measure_values.h"
#include "core/metrics/measures.h"
#include "core/policies/compactor/compactor_log.h"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace kvscope {

namespace {

/// Repeats a run with its step log, in which drawn leverage leaves its distortions.
std::vector<double> spectralDistortions(const LayerRunner& runner, RunRequest request, bool drawn) {
    request.recordSteps = true;
    request.measure = false;
    const auto log = std::dynamic_pointer_cast<const LeverageLog>(runner.run(request, {})->log);
    if (!log) return {};
    return drawn ? log->distortion : log->topDistortion;
}

/// Bytes stored, as tokens of an exact cache per KV head.
double memoryInTokens(const SweepRow& row) {
    const RunRequest& run = row.result->request;
    const CaptureInfo& info = run.capture->info();
    const double width = info.layerInfo(run.layer).storedType == StoredType::Float32 ? 4 : 2;
    return static_cast<double>(row.storedBytes) / (width * info.numKvHeads * (info.headDim + info.valueDim));
}

/// A run without random numbers counts once, whatever the number of seeds.
std::vector<double> samplesOfCapture(const std::map<int, PointSamples::PerSeed>& layers) {
    std::vector<double> all;
    for (const auto& [layer, seeds] : layers) {
        const bool same =
            std::all_of(seeds.begin(), seeds.end(), [&](const auto& values) { return values == seeds.front(); });
        for (std::size_t i = 0; i < (same ? 1 : seeds.size()); ++i)
            all.insert(all.end(), seeds[i].begin(), seeds[i].end());
    }
    return all;
}

Summary summaryOfPoint(const PointSamples& samples, bool overCaptures) {
    std::vector<double> all;
    for (const auto& [capture, layers] : samples.values) {
        const std::vector<double> values = samplesOfCapture(layers);
        if (overCaptures)
            all.push_back(meanOfNumbers(values));
        else
            all.insert(all.end(), values.begin(), values.end());
    }
    return summaryOf(all);
}

PowerLaw lawOf(const ReproducedSeries& series) {
    std::vector<double> x, y;
    for (const ReproducedPoint& point : series.points) {
        x.push_back(point.x);
        y.push_back(point.summary.mean);
    }
    return fitPowerLaw(x, y);
}

} // namespace

Budget budgetOf(const Reproduction& reproduction, const std::string& text, std::int64_t visible) {
    const Budget share = Budget::parse(text);
    if (reproduction.exactFirst == 0 || share.unit != Budget::Unit::Fraction) return share;
    const double others = std::floor(share.value * static_cast<double>(visible - reproduction.exactFirst));
    return {Budget::Unit::Tokens, static_cast<double>(reproduction.exactFirst) + std::max(1.0, others)};
}

void GatheredSeries::add(const SweepRow& row) {
    for (const std::string& measure : m_reproduction.measures)
        if (const std::vector<double> values = samplesOf(*row.result, measure); !values.empty())
            addSamples(row, measure, values);
}

std::vector<ReproducedSeries> GatheredSeries::series(bool overCaptures) const {
    std::vector<ReproducedSeries> all;
    for (const auto& [key, points] : m_points) {
        ReproducedSeries one{key.second, key.first, m_measureOf.at(key), {}};
        for (const PointSamples& samples : points)
            one.points.push_back({samples.x, samples.text, summaryOfPoint(samples, overCaptures)});
        if (m_reproduction.axis != ReproductionAxis::Parameter)
            std::sort(one.points.begin(), one.points.end(), [](const auto& a, const auto& b) { return a.x < b.x; });
        if (m_reproduction.method == ReproductionMethod::PowerLaw) one.law = lawOf(one);
        all.push_back(std::move(one));
    }
    return all;
}

std::vector<double> GatheredSeries::samplesOf(const RunResult& result, const std::string& measure) const {
    const auto perRun = [&](std::vector<double> heads) {
        return m_reproduction.overHeads || heads.empty() ? heads : std::vector<double>{meanOfNumbers(heads)};
    };
    if (measure == "policy_ms") return {result.times.featuresMs + result.times.combineMs + result.times.selectMs};
    if (measure == "spectral_drawn" || measure == "spectral_top")
        return perRun(spectralDistortions(m_runner, result.request, measure == "spectral_drawn"));
    if (measure == "overlap") return perRun(overlaps(result));
    if (!result.fidelity || (measureById(measure).need == MeasureNeed::Scores && result.scores.empty())) return {};
    const std::vector<std::string> ids = {measure};
    return perRun(m_runner.measure(result, ids, {}).front().perHead);
}

/// Jaccard overlap per KV head with the list of the reference value under the same seed.
std::vector<double> GatheredSeries::overlaps(const RunResult& result) const {
    assert(!m_reproduction.reference.empty());
    RunRequest request = result.request;
    request.policy.values.setText(m_reproduction.varied.id, m_reproduction.reference);
    request.measure = false;
    const auto reference = m_runner.run(request, {});
    std::vector<double> heads;
    for (std::size_t h = 0; h < result.selection.heads.size(); ++h)
        heads.push_back(jaccard(result.selection.heads[h].kept, reference->selection.heads[h].kept));
    return heads;
}

void GatheredSeries::addSamples(const SweepRow& row, const std::string& measure, const std::vector<double>& values) {
    const RunRequest& run = row.result->request;
    const Key key{run.policy.policy, labelOf(run, measure)};
    m_measureOf[key] = measure;
    std::vector<PointSamples>& points = m_points[key];
    const std::string text = placeOf(run);
    auto at = std::find_if(points.begin(), points.end(), [&](const PointSamples& s) { return s.text == text; });
    if (at == points.end()) at = points.insert(points.end(), PointSamples{0, 0, text});
    // x is the mean realised budget of the point.
    at->x = (at->x * static_cast<double>(at->rows) + xOf(row)) / static_cast<double>(at->rows + 1);
    at->rows += 1;
    at->values[run.capture.get()][run.layer.value].push_back(values);
}

std::string GatheredSeries::labelOf(const RunRequest& run, const std::string& measure) const {
    const VariedParameter& varied = m_reproduction.varied;
    std::string label = run.policy.policy;
    if (m_reproduction.axis == ReproductionAxis::Memory) {
        PolicySpec swept = run.policy;
        swept.budget.reset();
        if (swept.values.has(varied.id)) swept.values.reset(varied.id);
        label = swept.text();
    } else if (!varied.id.empty() && m_reproduction.axis != ReproductionAxis::Parameter) {
        label += " " + varied.id + "=" + run.policy.values.text(varied.id);
    }
    return m_reproduction.measures.size() > 1 ? label + " " + measure : label;
}

std::string GatheredSeries::placeOf(const RunRequest& run) const {
    const std::string& varied = m_reproduction.varied.id;
    switch (m_reproduction.axis) {
    case ReproductionAxis::Layer: return std::to_string(run.layer.value);
    case ReproductionAxis::Tokens: return std::to_string(run.capture->info().numTokens);
    case ReproductionAxis::Parameter: return run.policy.values.text(varied);
    case ReproductionAxis::Memory:
        return run.policy.values.has(varied) ? varied + "=" + run.policy.values.text(varied) : run.budget.text();
    case ReproductionAxis::Retention: break;
    }
    for (const std::string& budget : m_reproduction.budgets)
        if (budgetOf(m_reproduction, budget, run.cut.token) == run.budget) return budget;
    return run.budget.text();
}

double GatheredSeries::xOf(const SweepRow& row) const {
    const RunRequest& run = row.result->request;
    switch (m_reproduction.axis) {
    case ReproductionAxis::Layer: return run.layer.value;
    case ReproductionAxis::Tokens: return static_cast<double>(run.capture->info().numTokens);
    case ReproductionAxis::Parameter: {
        const auto& values = m_reproduction.varied.values;
        return static_cast<double>(std::find(values.begin(), values.end(), placeOf(run)) - values.begin());
    }
    case ReproductionAxis::Memory: return memoryInTokens(row);
    case ReproductionAxis::Retention: break;
    }
    const auto exact = static_cast<double>(m_reproduction.exactFirst);
    return exact == 0 ? row.retention : (row.keptTokens - exact) / (static_cast<double>(run.cut.token) - exact);
}

} // namespace kvscope
