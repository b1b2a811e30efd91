// A reproduction is a sweep whose rows are averaged into points, each with a spread over one level: captures where
// there are several. Some reproductions need only the lengths of the prompts.
#include "core/studies/reproduction.h"

#include "core/base/csv.h"
#include "core/base/error.h"
#include "core/base/json/json_text.h"
#include "core/base/nearest_name.h"
#include "core/base/number_text.h"
#include "core/capture/capture.h"
#include "core/engine/engine.h"
#include "core/policies/policy.h"
#include "core/studies/reproduction_series.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cassert>
#include <map>
#include <set>

namespace kvscope {

namespace {

std::string xTitleOf(const Reproduction& reproduction) {
    switch (reproduction.axis) {
    case ReproductionAxis::Layer: return "Layer";
    case ReproductionAxis::Tokens: return "Tokens";
    case ReproductionAxis::Parameter: {
        const ParameterSpec& spec = *variedSpec(reproduction);
        const std::string unit = unitBeside(spec);
        return spec.label + (unit.empty() ? "" : ", " + unit);
    }
    case ReproductionAxis::Memory: return "Memory: tokens of an exact KV head";
    case ReproductionAxis::Retention: break;
    }
    if (reproduction.measures.front().starts_with("spectral_")) return "Rows drawn, as a share of those before the cut";
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
        if (findPolicy(id))
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

/// The request for one capture, with budgets converted to tokens of its own length, each number of tokens once.
SweepRequest besideExactTokens(SweepRequest request, const Reproduction& reproduction,
                               const std::shared_ptr<const CaptureReader>& capture, std::vector<std::string>& notes) {
    const std::int64_t visible = Cut::resolve(request.cut, *capture).token;
    if (visible <= reproduction.exactFirst)
        throw Error({fmt::format("'{}' keeps the first {} tokens exactly, and only {} lie before the cut {}",
                                 reproduction.id, reproduction.exactFirst, visible, request.cut),
                     "", "Give a longer capture", capture->info().path});
    request.captures = {capture};
    request.budgets.clear();
    for (const std::string& budget : reproduction.budgets) {
        const Budget tokens = budgetOf(reproduction, budget, visible);
        const std::vector<std::string> same = budgetsLike(reproduction, tokens, visible);
        if (same.size() > 1 && same.back() == budget)
            notes.push_back(fmt::format("{} are the same {:.0f} tokens in {}: one run stands at each of them",
                                        fmt::join(same, " and "), tokens.value, capture->info().fileName));
        if (same.front() == budget) request.budgets.push_back(tokens);
    }
    return request;
}

/// The fit with the range that it covers, and which of the theory's powers its interval excludes.
std::string lawText(const ReproducedSeries& series, const std::vector<double>& powers) {
    const PowerLaw& law = *series.law;
    const double low = law.exponent - law.halfInterval, high = law.exponent + law.halfInterval;
    std::vector<std::string> excluded;
    for (const double power : powers)
        if (power < low || power > high) excluded.push_back(shortest(power));
    return fmt::format("fit: {} of {} goes with memory to the power {:.3f} (95 %: {:.3f} to {:.3f}{}; {} points from "
                       "{:.0f} to {:.0f} tokens)",
                       series.measure, series.label, law.exponent, low, high,
                       excluded.empty() ? "" : fmt::format(", which excludes {}", fmt::join(excluded, " and ")),
                       law.points, series.points.front().x, series.points.back().x);
}

/// Adds the notes of the runs of a series, with their points unless all points have them. Of notes that differ only in
/// numbers, the first stands for all.
void addRunNotes(ReproductionResult& result) {
    for (const ReproducedSeries& series : result.series) {
        std::map<std::string, std::vector<std::pair<std::string, std::string>>> places; // notes with their points
        for (const ReproducedPoint& point : series.points)
            for (const std::string& note : point.notes) places[wordsOf(note)].emplace_back(note, point.xText);
        for (const auto& [words, notes] : places) {
            std::vector<std::string> at;
            for (const auto& [note, place] : notes) at.push_back(place);
            const bool same = notes.front().first == notes.back().first;
            const std::string where = !same ? " at " + at.front() + " (alike at the others)"
                                      : at.size() < series.points.size() ? fmt::format(" at {}", fmt::join(at, ", "))
                                                                         : "";
            result.notes.push_back(series.label + where + ": " + notes.front().first);
        }
    }
}

/// "bars: 95 % intervals of the mean over layers; averaged first over seeds, then over heads and layers"
std::string spreadText(const Reproduction& reproduction, const ReproductionResult& result) {
    std::set<std::string> levels;
    for (const ReproducedSeries& series : result.series)
        for (const ReproducedPoint& point : series.points)
            if (!point.over.empty()) levels.insert(point.over);
    if (levels.empty()) return "no bars: there is one number per point";
    const std::string over =
        fmt::format("{} over {}", reproduction.showDeviation ? "standard deviations" : "95 % intervals of the mean",
                    fmt::join(levels, " or "));
    if (reproduction.method == ReproductionMethod::KeptShares) return "bars: " + over;
    const char* before = reproduction.over == "vectors" ? ", those of all heads together"
                         : reproduction.over == "seeds" ? "; each seed averaged over heads, layers and captures"
                                                        : "; averaged first over seeds, then over heads and layers";
    return "bars: " + over + before;
}

/// Notes or refuses a capture without all queries: a mean over queries is then not over the whole prompt.
void checkQueries(ReproductionResult& result, const Reproduction& reproduction, const CaptureInfo& info,
                  const std::vector<int>& layers) {
    for (const LayerInfo& layer : info.layers) {
        if (!layers.empty() && std::ranges::count(layers, layer.layer.value) == 0) continue;
        if (layer.queryCount == info.numTokens) continue;
        if (reproduction.allQueries)
            throw Error({fmt::format("'{}' is about the queries of all tokens, and layer {} holds those of "
                                     "the last {} of {}",
                                     reproduction.id, layer.layer.value, layer.queryCount, info.numTokens),
                         "queries", "Capture the queries of all tokens", info.path});
        result.notes.push_back(fmt::format("queries: {} holds those of the last {} of {} tokens, and measures of "
                                           "queries are over these",
                                           info.fileName, layer.queryCount, info.numTokens));
        return;
    }
}

/// "budget: 0.25 of the tokens before the cut"; empty where the horizontal axis shows the budgets.
std::string budgetsBesideAxis(const Reproduction& reproduction) {
    if (reproduction.axis == ReproductionAxis::Retention || reproduction.axis == ReproductionAxis::Memory) return {};
    std::vector<std::string> words;
    for (const std::string& text : reproduction.budgets) {
        const Budget budget = Budget::parse(text);
        words.push_back(budget.unit == Budget::Unit::Fraction ? text : fmt::format("{} tokens", budget.value));
    }
    if (words.empty()) return {};
    return fmt::format("budget: {} of the tokens before the cut{}", fmt::join(words, ", "),
                       reproduction.exactFirst > 0 ? fmt::format(", the first {} left out", reproduction.exactFirst)
                                                   : "");
}

/// Notes on the data and parameters behind the numbers.
void describe(ReproductionResult& result, const Reproduction& reproduction, const SweepRequest& request) {
    for (const ReproducedSeries& series : result.series)
        if (series.law) result.notes.push_back(lawText(series, reproduction.powers));
    addRunNotes(result);
    for (const PolicySpec& spec : request.policies) result.notes.push_back("policy: " + spec.text());
    if (const std::string budgets = budgetsBesideAxis(reproduction); !budgets.empty()) result.notes.push_back(budgets);
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
    result.notes.push_back(fmt::format("cut: {}; seeds: {}; outputs before W_o", reproduction.cut, reproduction.seeds));
    result.notes.push_back(spreadText(reproduction, result));
}

ReproductionResult sweepResult(const LayerRunner& runner, const Reproduction& reproduction,
                               const std::vector<std::shared_ptr<const CaptureReader>>& captures,
                               const std::vector<int>& layers, const Checkpoint& checkpoint) {
    ReproductionResult result;
    const SweepRequest request = sweepOf(reproduction, captures, layers, result.notes);
    for (const auto& capture : captures) checkQueries(result, reproduction, capture->info(), layers);
    GatheredSeries gathered(runner, reproduction);
    const auto take = [&](const SweepRow& row) { gathered.add(row); };
    if (reproduction.exactFirst == 0) runSweep(runner, request, checkpoint, take);
    for (std::size_t i = 0; i < captures.size() && reproduction.exactFirst > 0; ++i) {
        const auto part = [&](std::size_t at) {
            return static_cast<double>(at) / static_cast<double>(captures.size());
        };
        runSweep(runner, besideExactTokens(request, reproduction, captures[i], result.notes),
                 checkpoint.part(part(i), part(i + 1)), take);
    }
    result.series = gathered.series();
    result.xTitle = xTitleOf(reproduction);
    describe(result, reproduction, request);
    result.notes.push_back(
        fmt::format("engine: {}; arithmetic: {}", runner.engine().name(), runner.engine().arithmetic()));
    return result;
}

ReproductionResult lengthResult(const Reproduction& reproduction,
                                const std::vector<std::shared_ptr<const CaptureReader>>& captures) {
    if (captures.empty())
        throw Error({"there is no prompt to take the length of", "captures", "Give at least one capture"});
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
    if (shares) result.notes.push_back(spreadText(reproduction, result));
    return result;
}

} // namespace

ReproductionResult reproduce(const LayerRunner& runner, const Reproduction& reproduction,
                             const std::vector<std::shared_ptr<const CaptureReader>>& captures,
                             const std::vector<int>& layers, const Checkpoint& checkpoint) {
    if (!reproduction.elsewhere.empty())
        throw Error({"'" + reproduction.id + "' is not made here", "",
                     (reproduction.elsewhere.starts_with("kvscope ") ? "Run " : "It ") + reproduction.elsewhere});
    const bool fromLengths =
        reproduction.method == ReproductionMethod::KeptShares || reproduction.method == ReproductionMethod::Lengths;
    ReproductionResult result = fromLengths ? lengthResult(reproduction, captures)
                                            : sweepResult(runner, reproduction, captures, layers, checkpoint);
    result.yTitle = reproductionMeasureLabel(reproduction.measures.front());
    for (std::size_t m = 1; m < reproduction.measures.size(); ++m)
        result.yTitle += "; " + reproductionMeasureLabel(reproduction.measures[m]);
    result.notes.push_back("data of the paper: " + reproduction.paperData);
    if (!reproduction.caveat.empty()) result.notes.push_back("note: " + reproduction.caveat);
    return result;
}

std::string reproductionCsv(const Reproduction& reproduction, const ReproductionResult& result) {
    std::string text = "# " + reproduction.item + "\n";
    for (const std::string& note : result.notes) text += "# " + note + "\n";
    text += "# x: " + result.xTitle + "; mean: " + result.yTitle + "\n";
    text += "series,policy,measure,x,x_text,mean,deviation,half_interval_95,samples,over,notes\n";
    for (const ReproducedSeries& series : result.series)
        for (const ReproducedPoint& p : series.points) {
            const bool spread = !p.over.empty();
            text += fmt::format("{},{},{},{},{},{},{},{},{},{},{}\n", csvField(series.label), series.policyId,
                                series.measure, shortest(p.x), csvField(p.xText), shortest(p.summary.mean),
                                spread ? shortest(p.summary.deviation) : "",
                                spread ? shortest(p.summary.halfInterval()) : "", p.summary.count, p.over,
                                csvField(fmt::format("{}", fmt::join(p.notes, "; "))));
        }
    return text;
}

namespace {

// A further table or figure is a row of reproductions.json; what a row leaves out has the default of its field.
const std::map<std::string, ReproductionAxis> kAxes = {{"retention", ReproductionAxis::Retention},
                                                       {"layer", ReproductionAxis::Layer},
                                                       {"tokens", ReproductionAxis::Tokens},
                                                       {"parameter", ReproductionAxis::Parameter},
                                                       {"memory", ReproductionAxis::Memory}};
const std::map<std::string, ReproductionMethod> kMethods = {{"sweep", ReproductionMethod::Sweep},
                                                            {"power_law", ReproductionMethod::PowerLaw},
                                                            {"kept_shares", ReproductionMethod::KeptShares},
                                                            {"lengths", ReproductionMethod::Lengths}};

Reproduction readRow(const nlohmann::json& row) {
    Reproduction made;
    std::size_t taken = 0;
    const auto take = [&](const char* key, auto& field) {
        if (const auto at = row.find(key); at != row.end()) at->get_to(field), ++taken;
    };
    std::string axis = "retention", method = "sweep";
    take("id", made.id);
    take("item", made.item);
    take("paper_data", made.paperData);
    take("elsewhere", made.elsewhere);
    take("caveat", made.caveat);
    take("policies", made.policies);
    take("budgets", made.budgets);
    take("varied", made.varied.id);
    take("values", made.varied.values);
    take("reference", made.reference);
    take("measures", made.measures);
    take("method", method);
    take("axis", axis);
    take("cut", made.cut);
    take("seeds", made.seeds);
    take("over_heads", made.overHeads);
    take("over", made.over);
    take("show_deviation", made.showDeviation);
    take("all_queries", made.allQueries);
    take("exact_first", made.exactFirst);
    take("powers", made.powers);
    assert(taken == row.size()); // else a key is misspelt
    made.axis = kAxes.at(axis);
    made.method = kMethods.at(method);
    return made;
}

} // namespace

const std::vector<Reproduction>& allReproductions() {
    static const std::vector<Reproduction> rows = [] {
        std::vector<Reproduction> all;
        for (const nlohmann::json& row : parsedJson(reproductionText("reproductions"))) all.push_back(readRow(row));
        return all;
    }();
    return rows;
}

const Reproduction& reproductionById(std::string_view id) {
    return requireNamed(allReproductions(), &Reproduction::id, id, "nothing to reproduce is called");
}

} // namespace kvscope
