// Averages the rows of a sweep into points: each row belongs to a series (policy, value of the varied parameter,
// measure) and to an x, and a point is the mean of its samples.
#include "core/studies/reproduction_series.h"

#include "core/capture/capture.h"
#include "core/metrics/measure_values.h"
#include "core/metrics/measures.h"
#include "core/policies/compactor/compactor_log.h"
#include "core/policies/policy.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>

namespace kvscope {

namespace {

/// Repeats a run with its step log, where drawn leverage records its distortions.
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

/// KeyDiff's cache sizes, which are also the edges of its Table 7.
constexpr std::array kPaperTokens = {2048.0, 4096.0, 6144.0, 8192.0};
/// Table 7: prompts of at most 8K, summed over the corpora, and all prompts.
constexpr std::int64_t kPaperWhole = 1790, kPaperPrompts = 4120;

ReproducedSeries emptySeries(const std::string& label, const std::string& measure) {
    return {label, "exact", measure, {}};
}

std::string scaleNote(const std::vector<std::int64_t>& lengths) {
    if (lengths.size() == 1) return "not scaled: one prompt has no distribution of lengths to take a share of";
    const double here = scaledTokens(kPaperTokens.back(), lengths);
    const auto whole =
        std::ranges::count_if(lengths, [&](std::int64_t length) { return static_cast<double>(length) <= here; });
    return fmt::format("scaled: 8K of the paper is {:.0f} tokens here, which hold {} of {} prompts whole ({:.0f} %; 8K "
                       "of LongBench {} of {}, {:.0f} %, KeyDiff Table 7); 2K, 4K and 6K in proportion",
                       here, whole, lengths.size(),
                       100 * static_cast<double>(whole) / static_cast<double>(lengths.size()), kPaperWhole,
                       kPaperPrompts, 100.0 * kPaperWhole / kPaperPrompts);
}

std::string sizeText(double paperTokens) { return fmt::format("{:.0f}K", paperTokens / 1024); }

Summary keptShares(double cache, const std::vector<std::int64_t>& lengths) {
    std::vector<double> shares;
    for (const std::int64_t length : lengths) shares.push_back(std::min(1.0, cache / static_cast<double>(length)));
    return summaryOf(shares);
}

/// Prompts of each bin: up to the first edge, up to the second ..., beyond the last.
ReproducedSeries binned(const std::string& label, const std::vector<double>& edges,
                        const std::vector<std::int64_t>& lengths) {
    ReproducedSeries series = emptySeries(label, "prompts");
    for (std::size_t bin = 0; bin <= edges.size(); ++bin) {
        const double low = bin == 0 ? 0 : edges[bin - 1];
        const bool open = bin == edges.size();
        const auto inside = std::ranges::count_if(lengths, [&](std::int64_t length) {
            return static_cast<double>(length) > low && (open || static_cast<double>(length) <= edges[bin]);
        });
        const std::string text = open ? fmt::format("> {:.0f}", low)
                                      : fmt::format("{:.0f} to {:.0f}", std::floor(low) + 1, std::floor(edges[bin]));
        series.points.push_back(
            {static_cast<double>(bin), text, {std::ssize(lengths), static_cast<double>(inside), 0}});
    }
    return series;
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

std::vector<std::string> budgetsLike(const Reproduction& reproduction, const Budget& budget, std::int64_t visible) {
    std::vector<std::string> alike;
    for (const std::string& text : reproduction.budgets)
        if (budgetOf(reproduction, text, visible) == budget) alike.push_back(text);
    return alike;
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
    for (const std::string& place : placesOf(run)) addAt(place, row, measure, numbers);
}

void GatheredSeries::addAt(const std::string& place, const SweepRow& row, const std::string& measure,
                           const std::vector<double>& numbers) {
    const RunRequest& run = row.result->request;
    std::vector<PointSamples>& points = m_points[{run.policy.policy, labelOf(run, measure)}];
    auto at = std::ranges::find(points, place, &PointSamples::text);
    if (at == points.end()) at = points.insert(points.end(), PointSamples{0, 0, place});
    // x is the mean over the point's rows.
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

std::vector<std::string> GatheredSeries::placesOf(const RunRequest& run) const {
    const std::string& varied = m_reproduction.varied.id;
    switch (m_reproduction.axis) {
    case ReproductionAxis::Layer: return {std::to_string(run.layer.value)};
    case ReproductionAxis::Tokens: return {std::to_string(run.capture->info().numTokens)};
    case ReproductionAxis::Parameter: return {run.policy.values.text(varied)};
    case ReproductionAxis::Memory:
        return {run.policy.values.has(varied) ? varied + "=" + run.policy.values.text(varied) : run.budget.text()};
    case ReproductionAxis::Retention: break;
    }
    std::vector<std::string> places = budgetsLike(m_reproduction, run.budget, run.cut.token);
    if (places.empty()) places.push_back(run.budget.text());
    return places;
}

double GatheredSeries::xOf(const SweepRow& row, const std::string& measure) const {
    const RunRequest& run = row.result->request;
    if (measure.starts_with("spectral_")) // rows drawn, some of them several times
        return static_cast<double>(row.result->requested) / static_cast<double>(row.result->visible);
    switch (m_reproduction.axis) {
    case ReproductionAxis::Layer: return run.layer.value;
    case ReproductionAxis::Tokens: return static_cast<double>(run.capture->info().numTokens);
    case ReproductionAxis::Parameter: {
        const auto& values = m_reproduction.varied.values;
        return static_cast<double>(std::ranges::find(values, run.policy.values.text(m_reproduction.varied.id)) -
                                   values.begin());
    }
    case ReproductionAxis::Memory: return memoryInTokens(row);
    case ReproductionAxis::Retention: break;
    }
    const auto exact = static_cast<double>(m_reproduction.exactFirst);
    return exact == 0 ? row.retention : (row.keptTokens - exact) / (static_cast<double>(run.cut.token) - exact);
}

std::int64_t promptTokens(const CaptureReader& capture) {
    for (const Segment& segment : capture.tokens().segments)
        if (segment.kind == SegmentKind::Answer && segment.begin > 0) return segment.begin;
    return capture.info().numTokens;
}

double scaledTokens(double paperTokens, std::vector<std::int64_t> lengths) {
    assert(!lengths.empty());
    std::ranges::sort(lengths);
    const std::int64_t whole =
        (std::ssize(lengths) * kPaperWhole + kPaperPrompts - 1) / kPaperPrompts; // rounded up, at least 1
    return static_cast<double>(lengths[whole - 1]) * paperTokens / kPaperTokens.back();
}

std::vector<ReproducedSeries> keptShareSeries(const std::vector<std::int64_t>& lengths,
                                              std::vector<std::string>& notes) {
    ReproducedSeries same = emptySeries("the paper's cache sizes", "kept_share"),
                     scaled = emptySeries("scaled cache sizes", "kept_share");
    for (const double tokens : kPaperTokens) {
        const double here = scaledTokens(tokens, lengths);
        const std::string over = lengths.size() > 1 ? levelName(SampleLevel::Captures) : "";
        same.points.push_back({tokens, sizeText(tokens), keptShares(tokens, lengths), over});
        scaled.points.push_back(
            {tokens, fmt::format("{} as {:.0f} tokens", sizeText(tokens), here), keptShares(here, lengths), over});
    }
    notes.push_back(scaleNote(lengths));
    if (lengths.size() == 1) return {same};
    return {same, scaled};
}

std::vector<ReproducedSeries> lengthSeries(const std::vector<std::int64_t>& lengths, std::vector<std::string>& notes) {
    std::vector<double> edges(kPaperTokens.begin(), kPaperTokens.end()), scaled;
    for (const double edge : kPaperTokens) scaled.push_back(scaledTokens(edge, lengths));
    notes.push_back(scaleNote(lengths));
    if (lengths.size() == 1) return {binned("the paper's edges", edges, lengths)};
    return {binned("the paper's edges", edges, lengths), binned("scaled edges", scaled, lengths)};
}

std::string reproductionMeasureLabel(const std::string& measure) {
    static const std::map<std::string, std::string> own = {{"policy_ms", "Time of the policy, ms"},
                                                           {"spectral_drawn", "Spectral distortion of drawn rows"},
                                                           {"spectral_top", "Spectral distortion of the best rows"},
                                                           {"overlap", "Overlap of the kept lists (Jaccard)"},
                                                           {"kept_share", "Mean of min(1, N / L)"},
                                                           {"prompts", "Prompts of so many tokens"}};
    const auto at = own.find(measure);
    return at == own.end() ? measureById(measure).label : at->second;
}

const ParameterSpec* variedSpec(const Reproduction& reproduction) {
    for (const std::string& policy : reproduction.policies)
        for (const ParameterSpec& spec : *policyById(PolicySpec::parse(policy).policy).card().parameters)
            if (spec.id == reproduction.varied.id) return &spec;
    return nullptr;
}

std::string choiceLabel(const ParameterSpec& spec, const std::string& text) {
    for (const ParameterChoice& choice : spec.choices)
        if (choice.id == text) return choice.label;
    return text;
}

} // namespace kvscope
