// A reproduction is a sweep whose rows are averaged into points with 95 % intervals, over captures where there are
// several. Some need only the lengths of the prompts.
#include "core/studies/reproduction.h"
#include "core/base/csv.h"
#include "core/base/error.h"
#include "core/base/number_text.h"
#include "core/metrics/measures.h"
#include "core/policies/policy.h"
#include "core/studies/reproduction_series.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace kvscope {

namespace {

std::string xTitleOf(const Reproduction& reproduction) {
    switch (reproduction.axis) {
    case ReproductionAxis::Layer: return "Layer";
    case ReproductionAxis::Tokens: return "Tokens";
    case ReproductionAxis::Parameter: return reproduction.varied.id;
    case ReproductionAxis::Memory: return "Memory: tokens of an exact KV head";
    case ReproductionAxis::Retention: break;
    }
    if (reproduction.exactFirst > 0)
        return fmt::format("Share kept of the tokens between the first {} and the cut", reproduction.exactFirst);
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
    if (!reproduction.varied.id.empty()) request.varied = {reproduction.varied};
    if (!reproduction.varied.id.empty() && reproduction.axis != ReproductionAxis::Memory)
        std::erase_if(request.policies,
                      [&](const PolicySpec& spec) { return !spec.values.has(reproduction.varied.id); });
    for (const std::string& budget : reproduction.budgets) request.budgets.push_back(Budget::parse(budget));
    for (int seed = 1; seed < reproduction.seeds; ++seed) request.seeds.push_back(static_cast<std::uint64_t>(seed));
    return request;
}

/// The request for one capture, with budgets converted to tokens of its own length.
SweepRequest besideExactTokens(SweepRequest request, const Reproduction& reproduction,
                               const std::shared_ptr<const CaptureReader>& capture) {
    const std::int64_t visible = Cut::resolve(request.cut, *capture).token;
    if (visible <= reproduction.exactFirst)
        throw Error(
            {.sentence = fmt::format("'{}' keeps the first {} tokens exactly, and only {} lie before the cut {}",
                                     reproduction.id, reproduction.exactFirst, visible, request.cut),
             .place = {},
             .remedy = "Give a longer capture",
             .path = capture->info().path});
    request.captures = {capture};
    request.budgets.clear();
    for (const std::string& budget : reproduction.budgets)
        request.budgets.push_back(budgetOf(reproduction, budget, visible));
    return request;
}

std::string lawText(const ReproducedSeries& series) {
    const PowerLaw& law = *series.law;
    const double low = law.exponent - law.halfInterval, high = law.exponent + law.halfInterval;
    return fmt::format("fit: {} of {} goes with memory to the power {:.3f} (95 %: {:.3f} to {:.3f}, {} points){}",
                       series.measure, series.label, law.exponent, low, high, law.points,
                       high < 0 ? fmt::format(", so memory with 1/{} to the power {:.2f} ({:.2f} to {:.2f})",
                                              series.measure, -1 / law.exponent, -1 / low, -1 / high)
                                : "");
}

/// Notes on the data and parameters behind the numbers.
void describe(ReproductionResult& result, const Reproduction& reproduction, const SweepRequest& request) {
    for (const ReproducedSeries& series : result.series)
        if (series.law) result.notes.push_back(lawText(series));
    for (const PolicySpec& spec : request.policies) result.notes.push_back("policy: " + spec.text());
    if (!reproduction.reference.empty())
        result.notes.push_back(
            fmt::format("overlap with the lists of {}={}, everything else the same; two random lists of share r "
                        "overlap by about r / (2 - r)",
                        reproduction.varied.id, reproduction.reference));
    for (const auto& capture : request.captures)
        result.notes.push_back(fmt::format(
            "data here: {}, {}, {} tokens, {} of {} layers", capture->info().fileName, capture->info().modelId,
            capture->info().numTokens, request.layers.empty() ? capture->info().layers.size() : request.layers.size(),
            capture->info().numLayers));
    result.notes.push_back(fmt::format("cut: {}; seeds: {}; intervals: 95 % over {}; outputs before W_o",
                                       reproduction.cut, reproduction.seeds, result.samples));
}

ReproductionResult sweepResult(const LayerRunner& runner, const Reproduction& reproduction,
                               const std::vector<std::shared_ptr<const CaptureReader>>& captures,
                               const std::vector<int>& layers, const Checkpoint& checkpoint) {
    ReproductionResult result;
    const SweepRequest request = sweepOf(reproduction, captures, layers, result.notes);
    GatheredSeries gathered(runner, reproduction);
    const auto take = [&](const SweepRow& row) { gathered.add(row); };
    if (reproduction.exactFirst == 0) runSweep(runner, request, checkpoint, take);
    for (std::size_t i = 0; i < captures.size() && reproduction.exactFirst > 0; ++i) {
        const auto part = [&](std::size_t at) {
            return static_cast<double>(at) / static_cast<double>(captures.size());
        };
        runSweep(runner, besideExactTokens(request, reproduction, captures[i]), checkpoint.part(part(i), part(i + 1)),
                 take);
    }
    result.series = gathered.series(captures.size() > 1);
    result.xTitle = xTitleOf(reproduction);
    result.samples = captures.size() > 1 ? "captures" : reproduction.overHeads ? "heads" : "layers and seeds";
    describe(result, reproduction, request);
    return result;
}

ReproductionResult lengthResult(const Reproduction& reproduction,
                                const std::vector<std::shared_ptr<const CaptureReader>>& captures) {
    if (captures.empty())
        throw Error({.sentence = "there is no prompt to take the length of",
                     .place = "captures",
                     .remedy = "Give at least one capture"});
    ReproductionResult result;
    std::vector<std::int64_t> lengths;
    for (const auto& capture : captures) {
        lengths.push_back(promptTokens(*capture));
        result.notes.push_back(
            fmt::format("data here: {}, a prompt of {} tokens", capture->info().fileName, lengths.back()));
    }
    const bool shares = reproduction.method == ReproductionMethod::KeptShares;
    result.series = shares ? keptShareSeries(lengths, result.notes) : lengthSeries(lengths, result.notes);
    result.xTitle = shares ? "Cache size N of the paper, tokens" : "Tokens of a prompt";
    result.samples = "captures";
    return result;
}

} // namespace

ReproductionResult reproduce(const LayerRunner& runner, const Reproduction& reproduction,
                             const std::vector<std::shared_ptr<const CaptureReader>>& captures,
                             const std::vector<int>& layers, const Checkpoint& checkpoint) {
    if (!reproduction.elsewhere.empty())
        throw Error(
            {.sentence = "'" + reproduction.id + "' is not made here", .place = {}, .remedy = reproduction.elsewhere});
    const bool fromLengths =
        reproduction.method == ReproductionMethod::KeptShares || reproduction.method == ReproductionMethod::Lengths;
    ReproductionResult result = fromLengths ? lengthResult(reproduction, captures)
                                            : sweepResult(runner, reproduction, captures, layers, checkpoint);
    result.yTitle = reproductionMeasureLabel(reproduction.measures.front());
    if (reproduction.measures.size() > 1) result.yTitle = fmt::format("{}", fmt::join(reproduction.measures, ", "));
    result.notes.push_back("data of the paper: " + reproduction.paperData);
    if (!reproduction.caveat.empty()) result.notes.push_back("note: " + reproduction.caveat);
    return result;
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

std::string reproductionCsv(const Reproduction& reproduction, const ReproductionResult& result) {
    std::string text = "# " + reproduction.item + "\n";
    for (const std::string& note : result.notes) text += "# " + note + "\n";
    text += "series,policy,measure,x,x_text,mean,deviation,half_interval_95,samples\n";
    for (const ReproducedSeries& series : result.series)
        for (const ReproducedPoint& p : series.points)
            text +=
                fmt::format("{},{},{},{},{},{},{},{},{}\n", csvField(series.label), series.policyId, series.measure,
                            shortest(p.x), csvField(p.xText), shortest(p.summary.mean), shortest(p.summary.deviation),
                            shortest(p.summary.studentHalfInterval()), p.summary.count);
    return text;
}

} // namespace kvscope
