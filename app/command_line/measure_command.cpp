// `kvscope measure`: fidelity of a selection per query head, over the evaluation queries.
#include "app/command_line/command.h"
#include "app/command_line/random_options.h"
#include "app/command_line/table_rows.h"
#include "app/study/compared_capture.h"
#include "core/base/error.h"
#include "core/capture/open_capture.h"
#include "core/lists/selection_file.h"
#include "core/metrics/measure_values.h"
#include "core/metrics/measures.h"
#include "core/metrics/statistics.h"
#include "core/policies/policy.h"
#include "core/policies/policy_needs.h"
#include "core/run/calibrated_budget.h"
#include "core/run/record_results.h"
#include "core/run/run_grid.h"
#include "core/run/stored_rows.h"
#include "core/studies/policy_work.h"

#include <CLI/App.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <optional>
#include <set>

namespace kvscope {

namespace {

using Json = nlohmann::ordered_json;

/// The results of one request, one per seed.
struct Group {
    std::vector<std::shared_ptr<const RunResult>> results;
    std::vector<std::vector<MeasureValues>> measures;
    std::string spec;
    bool overSeeds = false;   ///< columns for the spread over seeds
    bool draws = false;       ///< the policy reads the seed, or the list may come from such a policy
    std::optional<Work> work; ///< of the choice, where it was counted
};

struct Row {
    const Group& group;
    int layer, queryHead, kvHead;
    const Group* compared = nullptr; ///< the same on the second capture
};

/// The number of a measure that belongs to a query head: its own, that of its KV head, or that of the layer.
double valueFor(const MeasureValues& values, int queryHead, int kvHead) {
    switch (measureById(values.id).shape) {
    case MeasureShape::PerKvHead: return values.perHead[kvHead];
    case MeasureShape::PerLayerQuery: return values.perHead.front();
    default: return values.perHead[queryHead];
    }
}

/// The summary over the seeds. A policy that draws no random numbers gives the same number for all seeds, so its
/// deviation is 0. From one seed the deviation of a policy that draws is unknown (NaN), as is that of a recorded list,
/// which may have been drawn.
template <class Value> Summary overSeeds(const Row& row, Value value) {
    std::vector<double> values;
    for (std::size_t i = 0; i < row.group.results.size(); ++i) values.push_back(value(i));
    Summary summary = summaryOf(values);
    if (!row.group.draws && summary.count == 1) summary.deviation = 0;
    return summary;
}

/// Tokens that a query head of the KV head attends to; NaN where a recorded list leaves the head out.
double keptOf(const RunResult& result, int kvHead) {
    if (leavesOut(result, kvHead)) return NAN;
    return result.selection.heads[kvHead].attendedTokens();
}

std::string seedText(const Row& row) {
    const std::uint64_t first = row.group.results.front()->request.seed, last = row.group.results.back()->request.seed;
    return first == last ? std::to_string(first) : fmt::format("{} of {}-{}", row.group.results.size(), first, last);
}

/// Mean over the seeds: with a budget tau=T each seed has a budget of its own.
template <class Count> Json meanCount(const Row& row, Count count) {
    return countJson(overSeeds(row, [&](std::size_t i) {
                         return static_cast<double>(std::invoke(count, *row.group.results[i]));
                     }).mean);
}

/// What the KV head stores, in tokens with a key and a value each; mean over the seeds.
Json storedTokensOf(const Row& row) {
    return countJson(overSeeds(row, [&](std::size_t i) {
                         return meanStoredTokens(*row.group.results[i], KvHeadIndex(row.kvHead));
                     }).mean);
}

/// The notes of the runs of all seeds, each once.
std::string notesText(const Group& group) {
    std::vector<std::string> notes;
    for (const auto& result : group.results) notes.insert(notes.end(), result->notes.begin(), result->notes.end());
    return fmt::format("{}", fmt::join(withoutRepeats(notes), "; "));
}

/// Where the errors of the table are stated: measures after the output projection say so by their ids.
std::string statedAt(const std::vector<MeasureValues>& measures) {
    const auto after = [](const MeasureValues& values) {
        return measureById(values.id).need == MeasureNeed::OutputProjection;
    };
    if (std::ranges::none_of(measures, after)) return "before W_o";
    return std::ranges::all_of(measures, after) ? "after W_o" : "before W_o, columns with _wo after it";
}

/// Adds the same numbers on the second capture, and their differences, the second less the first.
void addCompared(TableRow& columns, const Row& row) {
    const RunResult& there = *row.compared->results.front();
    const Row other{*row.compared, row.layer, row.queryHead, row.kvHead};
    const double kept =
        overSeeds(other, [&](std::size_t i) { return keptOf(*other.group.results[i], row.kvHead); }).mean;
    columns.insert(columns.end(), {{"compared_capture", there.request.capture->info().fileName},
                                   {"compared_cut_token", there.request.cut.token},
                                   {"compared_kept", kept},
                                   {"compared_retention", kept / static_cast<double>(there.visible)},
                                   {"compared_stored_tokens", storedTokensOf(other)}});
    for (std::size_t m = 0; m < row.group.measures.front().size(); ++m) {
        const auto mean = [m](const Row& of) {
            return overSeeds(of,
                             [&](std::size_t i) { return valueFor(of.group.measures[i][m], of.queryHead, of.kvHead); })
                .mean;
        };
        const std::string& id = row.group.measures.front()[m].id;
        columns.insert(columns.end(), {{"compared_" + id, mean(other)}, {id + "_difference", mean(other) - mean(row)}});
    }
    columns.push_back({"compared_notes", notesText(*row.compared)});
}

/// Queries of a query head that have no output error.
std::int64_t skipped(const RunResult& result, int queryHead) {
    const HostTensor& errors = requireFidelity(result).outputError;
    const auto row = std::span(errors.data).subspan(queryHead * errors.shape[1], errors.shape[1]);
    return std::ranges::count_if(row, [](float error) { return std::isnan(error); });
}

/// Column name and value, in the order of the CSV.
TableRow columnsOf(const Row& row) {
    const RunResult& r = *row.group.results.front();
    const Fidelity& f = requireFidelity(r);
    const double kept = overSeeds(row, [&](std::size_t i) { return keptOf(*row.group.results[i], row.kvHead); }).mean;
    TableRow columns = {{"capture", r.request.capture->info().fileName},
                        {"layer", row.layer},
                        {"query_head", row.queryHead},
                        {"kv_head", row.kvHead},
                        {"policy", r.request.recorded ? r.request.recorded->policy : r.request.policy.policy},
                        {"variant", r.request.recorded ? r.request.recorded->variant : r.request.policy.variant},
                        {"spec", row.group.spec},
                        {"list", r.request.recorded ? r.request.recorded->path : std::string()},
                        {"cut", r.request.cut.text},
                        {"cut_token", r.request.cut.token},
                        {"budget", r.request.recorded ? r.request.recorded->budgetRequested : askedBudget(r).text()},
                        {"budget_requested_tokens", meanCount(row, &RunResult::requested)},
                        {"kept", countJson(kept)},
                        {"retention", kept / static_cast<double>(r.visible)},
                        {"stored_tokens", storedTokensOf(row)}};
    columns.push_back(row.group.overSeeds ? std::pair{"seeds", Json(seedText(row))}
                                          : std::pair{"seed", Json(r.request.seed)});
    for (std::size_t m = 0; m < row.group.measures.front().size(); ++m) {
        const Summary summary = overSeeds(
            row, [&](std::size_t i) { return valueFor(row.group.measures[i][m], row.queryHead, row.kvHead); });
        const std::string& id = row.group.measures.front()[m].id;
        columns.push_back({id, summary.count > 0 ? summary.mean : NAN});
        if (row.group.overSeeds) columns.push_back({id + "_std", summary.deviation});
    }
    if (row.group.work)
        columns.insert(columns.end(),
                       {{"operations", row.group.work->operations}, {"bytes_touched", row.group.work->bytes}});
    columns.insert(columns.end(),
                   {{"queries", f.queryCount},
                    {"first_query", f.firstQuery},
                    {"seen_queries", f.seenQueries},
                    {"skipped", meanCount(row, [&](const RunResult& of) { return skipped(of, row.queryHead); })},
                    {"stated", statedAt(row.group.measures.front())},
                    {"simulated", r.simulated},
                    {"stored_bytes", meanCount(row, storedBytes)},
                    {"engine", r.engine},
                    {"arithmetic", r.arithmetic},
                    {"notes", notesText(row.group)}});
    if (row.compared) addCompared(columns, row);
    return columns;
}

class MeasureCommand final : public Command {
public:
    void addTo(CLI::App& app) override {
        m_command = app.add_subcommand("measure", "measure what a selection costs, over the queries after the cut");
        m_command->add_option("capture", m_capture, "capture file")->required();
        m_options.addTo(*m_command);
        m_random.addTo(*m_command);
        m_command->add_option(
            "--seeds", m_seeds,
            "like 0-9: mean and standard deviation (ID_std) over seeds, for policies that draw random numbers; one "
            "seed has no deviation, a policy that draws nothing has 0");
        m_command->add_flag("--work", m_work,
                            "count the operations and bytes of each choice: it is made once more, from nothing");
        m_command->add_option("--selection", m_selections, "a recorded list instead of a policy; may be repeated")
            ->allow_extra_args(false);
        m_command->add_option("--layers", m_layers, "what is written, like 0,2-3; all by default");
        m_command->add_option("--kv-heads", m_heads, "what is written, like 0-1; all by default");
        m_command
            ->add_option("--metrics", m_metrics, "output_error,retained_mass by default; `kvscope measures` lists them")
            ->delimiter(',');
        m_command->add_option("--compare-with", m_compareWith,
                              "a second capture of the same model: its numbers (compared_ID) and their difference, the "
                              "second less the first (ID_difference), become further columns");
        m_command->add_option("--out", m_out, "FILE.json or FILE.csv")->required();
    }

    void run(const CommandContext& context) override {
        m_metrics = withoutRepeats(m_metrics);
        for (const std::string& metric : m_metrics) measureById(metric); // refused before any work is done
        const auto capture = openCapture(m_capture);
        const auto heads = chosenKvHeads(m_heads, *capture);
        std::vector<RunRequest> requests = makeRequests(capture), compared;
        if (const auto other = comparedTo(*capture)) compared = makeRequests(other);
        const std::vector<int> seeds = parseRangeList(m_seeds, "--seeds");
        m_random.checkSeeds(seeds.size());
        const auto random = m_random.sourceFor(capture->info());
        const auto runner = m_options.makeRunner();
        const Checkpoint progress = context.checkpoint("measure");
        for (RunRequest& request : requests) request.random = random;
        const std::vector<Group> groups = measured(*runner, requests, compared, seeds, progress);
        std::vector<TableRow> rows;
        for (std::size_t i = 0; i < requests.size(); ++i) {
            const RunRequest& request = requests[i];
            const auto& gqaGroupOf = capture->info().layerInfo(request.layer).gqaGroupOf;
            for (std::size_t q = 0; q < gqaGroupOf.size(); ++q)
                if (heads.empty() || std::ranges::binary_search(heads, gqaGroupOf[q]))
                    rows.push_back(columnsOf({groups[i], request.layer.value, static_cast<int>(q), gqaGroupOf[q],
                                              compared.empty() ? nullptr : &groups[requests.size() + i]}));
        }
        m_random.finish();
        writeRows(m_out, "kvscope-measures", rows, context.commandLine());
    }

private:
    /// The second capture; null without one. Throws Error beside a recorded list, imported scores or given random
    /// numbers, which belong to one capture.
    std::shared_ptr<const CaptureReader> comparedTo(const CaptureReader& capture) const {
        if (m_compareWith.empty()) return nullptr;
        const bool imports = !m_options.policies.empty() && std::ranges::any_of(m_options.specs(), readsImportedScores);
        const char* ofOne = !m_selections.empty() ? "--selection"
                            : m_random.replays()  ? "--uniforms, --sketch"
                            : imports             ? "the policy imported"
                                                  : "";
        if (*ofOne)
            throw Error({fmt::format("what {} names belongs to one capture", ofOne), "--compare-with",
                         "Measure the two captures one by one"});
        auto other = openCapture(m_compareWith);
        checkComparable(capture, *other);
        return other;
    }

    /// The groups of the requests, then those of `compared`. Requests that read the same layer are measured together. A
    /// policy without random numbers and a recorded list are measured once.
    std::vector<Group> measured(const LayerRunner& runner, const std::vector<RunRequest>& requests,
                                const std::vector<RunRequest>& compared, const std::vector<int>& seeds,
                                const Checkpoint& progress) const {
        std::vector<RunRequest> all = requests;
        all.insert(all.end(), compared.begin(), compared.end());
        std::vector<std::size_t> byLayer(all.size());
        std::iota(byLayer.begin(), byLayer.end(), std::size_t{0});
        std::ranges::stable_sort(byLayer, {},
                                 [&](std::size_t i) { return std::pair(all[i].layer.value, i >= requests.size()); });
        std::vector<Group> groups(all.size());
        std::vector<GridPoint> points;
        for (const std::size_t i : byLayer) {
            Group& group = groups[i];
            group.spec = all[i].recorded ? "recorded:" + all[i].recorded->policy : all[i].policy.text();
            group.overSeeds = !m_seeds.empty();
            group.draws = all[i].recorded || policyById(all[i].policy.policy).card().usesSeed;
            const std::size_t count = group.draws && !all[i].recorded && !seeds.empty() ? seeds.size() : 1;
            for (std::size_t s = 0; s < count; ++s) {
                points.push_back({all[i], {}, static_cast<int>(i)});
                if (!seeds.empty() && !all[i].recorded) points.back().run.seed = static_cast<std::uint64_t>(seeds[s]);
            }
        }
        const auto measure = [&](std::size_t point, const auto& result, const Checkpoint& checkpoint) {
            Group& group = groups[static_cast<std::size_t>(points[point].group)];
            group.measures.push_back(runner.measure(*result, m_metrics, checkpoint));
            if (m_work && group.results.empty()) group.work = policyWork(runner, result->request, progress.silent());
            group.results.push_back(result);
        };
        runGrid(runner, points, progress, {measure}, LayersLeft::Forget);
        return groups;
    }

    /// Throws Error for what only a policy would read.
    void refusePolicyOptions() const {
        m_options.refuseBudgetAlone();
        for (const char* const option : {"--cut", "--seed"})
            if (m_command->count(option) > 0)
                throw Error({"a recorded list has a cut and a seed of its own, and no policy is named", option,
                             "Leave it out, or name policies with --policy"});
    }

    std::vector<RunRequest> makeRequests(const std::shared_ptr<const CaptureReader>& capture) const {
        std::vector<RunRequest> requests;
        const auto layers = chosenLayers(m_layers, *capture);
        if (m_options.policies.empty() && !m_selections.empty()) refusePolicyOptions();
        if (!m_options.policies.empty() || m_selections.empty()) {
            const Cut cut = Cut::resolve(m_options.cut, *capture);
            for (const PolicySpec& spec : m_options.specs())
                for (const LayerIndex layer : layers)
                    requests.push_back(makeRequest(capture, layer, spec, cut, m_options.seed, true));
        }
        for (const std::string& path : m_selections) {
            const auto recorded = std::make_shared<const RecordedSelection>(readSelection(path));
            checkAgainst(*recorded, *capture);
            std::set<int> there;
            for (const RecordedHead& head : recorded->heads) there.insert(head.layer);
            for (const LayerIndex layer : layers)
                if (there.contains(layer.value)) {
                    PolicySpec none;
                    none.budget = Budget{};
                    RunRequest request =
                        makeRequest(capture, layer, none, cutOf(*recorded, *capture), recorded->seed, true);
                    request.recorded = recorded;
                    requests.push_back(std::move(request));
                }
            if (std::ranges::none_of(layers, [&](LayerIndex layer) { return there.contains(layer.value); }))
                throw Error(
                    {there.empty() ? "the list holds no heads" : "the list holds none of these layers",
                     there.empty() ? "heads" : "--layers",
                     there.empty() ? "Write the list again" : fmt::format("It holds layers {}", fmt::join(there, ", ")),
                     path});
        }
        return requests;
    }

    RunOptions m_options;
    RandomOptions m_random;
    std::vector<std::string> m_selections, m_metrics{"output_error", "retained_mass"};
    std::string m_capture, m_layers, m_heads, m_seeds, m_out, m_compareWith;
    bool m_work = false;
};

} // namespace

std::unique_ptr<Command> makeMeasureCommand() { return std::make_unique<MeasureCommand>(); }

} // namespace kvscope
