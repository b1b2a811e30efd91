// Averages the rows of a sweep into points: each row belongs to a series (policy, value of the varied parameter,
// measure) and to an x, and a point is the mean of its samples.
#include "core/studies/reproduction_series.h"

#include "core/metrics/measure_values.h"
#include "core/metrics/measures.h"
#include "core/policies/compactor/compactor_log.h"
#include "core/policies/policy.h"
#include "core/studies/reproduction_labels.h"

#include <fmt/ranges.h>

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

PowerLaw lawOf(const ReproducedSeries& series) {
    std::vector<double> x, y;
    for (const ReproducedPoint& point : series.points) {
        x.push_back(point.x);
        y.push_back(point.summary.mean);
    }
    return fitPowerLaw(x, y);
}

} // namespace

std::string wordsOf(std::string note) {
    std::erase_if(note, [](char c) { return (c >= '0' && c <= '9') || c == '.' || c == ','; });
    return note;
}

Budget budgetOf(const Reproduction& reproduction, const std::string& text, std::int64_t visible) {
    const Budget share = Budget::parse(text);
    if (reproduction.exactFirst == 0 || share.unit != Budget::Unit::Fraction) return share;
    const double others = std::floor(share.value * static_cast<double>(visible - reproduction.exactFirst));
    return {Budget::Unit::Tokens, static_cast<double>(reproduction.exactFirst) + std::max(1.0, others)};
}

void GatheredSeries::add(const SweepRow& row) {
    for (const std::string& measure : m_reproduction.measures)
        if (const std::vector<double> numbers = numbersOf(*row.result, measure); !numbers.empty())
            addNumbers(row, measure, numbers);
}

std::vector<ReproducedSeries> GatheredSeries::series() const {
    std::vector<ReproducedSeries> all;
    for (const auto& [key, points] : m_points) {
        ReproducedSeries one{key.second, key.first, m_measureOf.at(key), {}, {}, m_titleOf.at(key)};
        for (const PointSamples& point : points) one.points.push_back(pointOf(point));
        if (m_reproduction.axis != ReproductionAxis::Parameter) std::ranges::sort(one.points, {}, &ReproducedPoint::x);
        if (m_reproduction.method == ReproductionMethod::PowerLaw) one.law = lawOf(one);
        all.push_back(std::move(one));
    }
    return all;
}

ReproducedPoint GatheredSeries::pointOf(const PointSamples& point) const {
    ReproducedPoint made{point.x, point.text, point.vectors, overVectors() ? "vectors" : ""};
    if (!overVectors()) {
        const LevelledMean mean = meanByLevels(
            point.samples, m_reproduction.over == "seeds" ? std::optional(SampleLevel::Seeds) : std::nullopt);
        made.summary = mean.summary;
        if (mean.over) made.over = levelName(*mean.over);
    }
    for (const auto& [words, note] : point.notes) made.notes.push_back(note);
    return made;
}

std::vector<double> GatheredSeries::numbersOf(const RunResult& result, const std::string& measure) const {
    const auto perRun = [&](std::vector<double> heads) {
        return m_reproduction.overHeads || heads.empty() ? heads : std::vector<double>{meanOfNumbers(heads)};
    };
    if (measure == "policy_ms") return {result.times.featuresMs + result.times.combineMs + result.times.selectMs};
    if (measure == "spectral_drawn" || measure == "spectral_top")
        return perRun(spectralDistortions(m_runner, result.request, measure == "spectral_drawn"));
    if (measure == "overlap") return perRun(overlaps(result));
    if (!result.fidelity || (measureById(measure).need == MeasureNeed::Scores && result.scores.empty())) return {};
    const std::vector<std::string> ids = {measure};
    const MeasureValues values = m_runner.measure(result, ids, {}).front();
    if (!overVectors()) return perRun(values.perHead);
    assert(!values.perVector.empty());
    return {values.perVector.data.begin(), values.perVector.data.end()};
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

void GatheredSeries::addNumbers(const SweepRow& row, const std::string& measure, const std::vector<double>& numbers) {
    const RunRequest& run = row.result->request;
    const Key key{run.policy.policy, labelOf(run, measure)};
    m_measureOf[key] = measure;
    m_titleOf[key] = titleOf(run, measure, key.second);
    std::vector<PointSamples>& points = m_points[key];
    const std::string text = placeOf(run);
    auto at = std::ranges::find(points, text, &PointSamples::text);
    if (at == points.end()) at = points.insert(points.end(), PointSamples{0, 0, text});
    // x is the mean realised budget of the point.
    at->x = (at->x * static_cast<double>(at->rows) + xOf(row, measure)) / static_cast<double>(at->rows + 1);
    at->rows += 1;
    for (const std::string& note : row.result->notes) at->notes.try_emplace(wordsOf(note), note);
    if (row.result->simulated) at->notes.try_emplace("simulated", "simulated on full-attention tensors");
    if (overVectors()) at->vectors = merged(at->vectors, summaryOf(numbers));
    const std::int64_t capture = m_captures.try_emplace(run.capture.get(), std::ssize(m_captures)).first->second;
    for (std::size_t head = 0; head < numbers.size() && !overVectors(); ++head)
        at->samples.push_back(
            {{static_cast<std::int64_t>(run.seed), static_cast<std::int64_t>(head), run.layer.value, capture},
             numbers[head]});
}

std::string GatheredSeries::labelOf(const RunRequest& run, const std::string& measure) const {
    const VariedParameter& varied = m_reproduction.varied;
    std::string label = run.policy.policy;
    if (run.policy.variant != policyById(label).card().variants.front().id) label += ":" + run.policy.variant;
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

/// The policy's name and its variant's, unless the row has one policy alone, then what else the label holds.
std::string GatheredSeries::titleOf(const RunRequest& run, const std::string& measure, const std::string& label) const {
    const PolicyCard& card = policyById(run.policy.policy).card();
    std::vector<std::string> parts = {card.name};
    for (const PolicyVariant& variant : card.variants)
        if (variant.id == run.policy.variant && variant.id != card.variants.front().id)
            parts.front() += " (" + variant.label + ")";
    for (const ParameterSpec& spec : *card.parameters)
        if (label.find("," + spec.id + "=") != std::string::npos ||
            label.find(" " + spec.id + "=") != std::string::npos)
            parts.push_back(spec.label + " " + choiceLabel(spec, run.policy.values.text(spec.id)));
    if (m_reproduction.measures.size() > 1) parts.push_back(reproductionMeasureLabel(measure));
    if (m_reproduction.policies.size() == 1 && parts.size() > 1) parts.erase(parts.begin());
    return fmt::format("{}", fmt::join(parts, ", "));
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

double GatheredSeries::xOf(const SweepRow& row, const std::string& measure) const {
    const RunRequest& run = row.result->request;
    if (measure.starts_with("spectral_")) // rows drawn, of which some are the same
        return static_cast<double>(row.result->requested) / static_cast<double>(row.result->visible);
    switch (m_reproduction.axis) {
    case ReproductionAxis::Layer: return run.layer.value;
    case ReproductionAxis::Tokens: return static_cast<double>(run.capture->info().numTokens);
    case ReproductionAxis::Parameter: {
        const auto& values = m_reproduction.varied.values;
        return static_cast<double>(std::ranges::find(values, placeOf(run)) - values.begin());
    }
    case ReproductionAxis::Memory: return memoryInTokens(row);
    case ReproductionAxis::Retention: break;
    }
    const auto exact = static_cast<double>(m_reproduction.exactFirst);
    return exact == 0 ? row.retention : (row.keptTokens - exact) / (static_cast<double>(run.cut.token) - exact);
}

} // namespace kvscope
