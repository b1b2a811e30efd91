// Converts results to lists for files, and lists from files to results, so that a recorded list is drawn and measured
// like a policy's choice.
#include "core/base/error.h"
#include "core/lists/selection_formats.h"
#include "core/run/calibrated_budget.h"
#include "core/run/layer_work.h"
#include "core/run/random_files.h"
#include "core/run/record_results.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

namespace kvscope {

namespace {

std::vector<const RecordedHead*> headsOf(const RecordedSelection& list, LayerIndex layer) {
    std::vector<const RecordedHead*> heads;
    for (const RecordedHead& head : list.heads)
        if (head.layer == layer.value) heads.push_back(&head);
    return heads;
}

std::string layersOf(const RecordedSelection& list) {
    std::set<int> layers;
    for (const RecordedHead& head : list.heads) layers.insert(head.layer);
    return layers.empty() ? "none" : fmt::format("{}", fmt::join(layers, ", "));
}

/// Writes the scores of all tokens to row `row` of [rows, cut]; a table without rows starts as NaN. A list that does
/// not know the number of tokens may end with its last kept one; the tokens behind that have no score.
void takeScores(HostTensor& table, std::int64_t rows, std::int64_t row, std::int64_t visible,
                const std::vector<float>& scores) {
    if (scores.empty()) return;
    if (table.empty()) table = HostTensor::filled({rows, visible}, std::numeric_limits<float>::quiet_NaN());
    const std::int64_t known = std::min(visible, std::ssize(scores));
    std::copy_n(scores.begin(), known, table.data.begin() + row * visible);
}

/// The scores of a list's heads: [Hkv, cut] and [Hq, cut], or empty.
struct TakenScores {
    HostTensor ofKvHeads, ofQueryHeads;
};

void takeHead(RunResult& result, TakenScores& scores, const RecordedHead& head) {
    HeadSelection& selection = result.selection.heads[head.kvHead];
    selection.kept = head.kept;
    selection.numeratorWeights = head.numeratorWeights;
    selection.denominatorWeights = head.denominatorWeights;
    selection.margin = static_cast<float>(head.margin);
    selection.storedKeys = head.storedKeys;
    selection.storedValues = head.storedValues;
    selection.queryHeads.assign(head.queryHeads.begin(), head.queryHeads.end());
    const CaptureInfo& info = result.request.capture->info();
    takeScores(scores.ofKvHeads, info.numKvHeads, head.kvHead, result.visible, head.scores);
    for (const RecordedQueryHead& own : head.queryHeads)
        takeScores(scores.ofQueryHeads, info.numQueryHeads, own.queryHead, result.visible, own.scores);
}

/// If only some query heads have own scores, those that share a set get the group's scores.
void completeQueryHeadScores(const RunResult& result, TakenScores& scores) {
    if (scores.ofQueryHeads.empty()) return;
    const std::vector<std::int32_t>& gqaGroupOf =
        result.request.capture->info().layerInfo(result.request.layer).gqaGroupOf;
    for (std::size_t q = 0; q < gqaGroupOf.size() && !scores.ofKvHeads.empty(); ++q)
        if (result.selection.heads[gqaGroupOf[q]].queryHeads.empty())
            std::copy_n(scores.ofKvHeads.data.begin() + gqaGroupOf[q] * result.visible, result.visible,
                        scores.ofQueryHeads.data.begin() + static_cast<std::int64_t>(q) * result.visible);
}

/// True when the list has no scores of evicted tokens (CSV).
bool keptScoresOnly(const RunResult& result) {
    std::size_t evicted = 0;
    for (std::size_t h = 0; h < result.selection.heads.size() && !result.scores.empty(); ++h) {
        const std::vector<TokenIndex>& kept = result.selection.heads[h].kept;
        const float* row = result.scores.data.data() + static_cast<std::int64_t>(h) * result.visible;
        for (TokenIndex token = 0; token < result.visible; ++token) {
            if (std::ranges::binary_search(kept, token)) continue;
            if (!std::isnan(row[token])) return false;
            ++evicted;
        }
    }
    return evicted > 0;
}

/// Row `row` of [rows, cut] as the scores of all tokens; empty if the table is.
std::vector<float> scoresOf(const RunResult& result, const HostTensor& table, std::int64_t row) {
    if (table.empty()) return {};
    const float nan = std::numeric_limits<float>::quiet_NaN();
    std::vector<float> scores(static_cast<std::size_t>(result.request.capture->info().numTokens), nan);
    std::copy_n(table.data.begin() + row * result.visible, result.visible, scores.begin());
    return scores;
}

RecordedHead recordedHead(const RunResult& result, std::size_t kvHead, bool withScores) {
    const HeadSelection& selection = result.selection.heads[kvHead];
    RecordedHead head;
    head.layer = result.request.layer.value;
    head.kvHead = static_cast<int>(kvHead);
    head.kept = selection.kept;
    head.numeratorWeights = selection.numeratorWeights;
    head.denominatorWeights = selection.denominatorWeights;
    head.margin = selection.margin;
    head.storedKeys = selection.storedKeys;
    head.storedValues = selection.storedValues;
    for (const QueryHeadSet& own : selection.queryHeads) {
        RecordedQueryHead& recorded = head.queryHeads.emplace_back(RecordedQueryHead{own});
        if (withScores) recorded.scores = scoresOf(result, result.queryHeadScores, own.queryHead);
    }
    if (withScores) head.scores = scoresOf(result, result.scores, static_cast<std::int64_t>(kvHead));
    return head;
}

/// The list's metadata, taken from the first result.
RecordedSelection describe(const RunResult& result, const RecordFilter& filter) {
    const RunRequest& request = result.request;
    RecordedSelection list;
    list.captureFile = request.capture->info().fileName;
    list.captureHash = request.capture->info().hash;
    list.captureTokens = request.capture->info().numTokens;
    list.captureWarning = request.capture->info().checkWarning();
    list.cut = request.cut.text;
    list.cutToken = request.cut.token;
    list.policy = request.policy.policy;
    list.variant = request.policy.variant;
    for (const ParameterSpec& row : request.policy.values.table())
        list.parameters.emplace_back(row.id, request.policy.values.text(row.id));
    list.budgetRequested = askedBudget(result).text();
    list.budgetOrigin = result.calibrated ? result.calibrated->text() : std::string();
    list.budgetTokens = result.requested;
    list.seed = request.seed;
    if (request.random && policyById(request.policy.policy).card().usesSeed)
        list.random = fmt::format("{}", fmt::join(notesOfRandom(*request.random), "; "));
    list.engine = result.engine;
    list.arithmetic = result.arithmetic;
    list.command = filter.command;
    list.simulated = result.simulated;
    return list;
}

std::vector<int> chosenHeads(const RecordFilter& filter, int count) {
    std::vector<int> heads = filter.kvHeads;
    if (heads.empty()) {
        heads.resize(static_cast<std::size_t>(count));
        std::iota(heads.begin(), heads.end(), 0);
    }
    for (const int head : heads)
        if (head < 0 || head >= count)
            throw Error({fmt::format("KV head {} does not exist", head), "kv heads",
                         fmt::format("The capture has KV heads 0 to {}", count - 1)});
    return heads;
}

/// Notes what the list says about how it was made.
void noteMarksOf(const RecordedSelection& list, RunResult& result) {
    if (!list.arithmetic.empty() && !list.arithmetic.starts_with("exact"))
        result.notes.push_back("the list was chosen with " + list.arithmetic);
    if (!list.budgetOrigin.empty()) result.notes.push_back("budget of the list: " + list.budgetOrigin);
    if (!list.random.empty()) result.notes.push_back("when the list was made: " + list.random);
    if (!list.captureWarning.empty() && list.captureWarning != result.request.capture->info().checkWarning())
        result.notes.push_back("when the list was made: " + list.captureWarning);
}

} // namespace

void takeRecorded(RunResult& result) {
    const RunRequest& request = result.request;
    const RecordedSelection& list = *request.recorded;
    checkAgainst(list, *request.capture);
    const Cut cut = cutOf(list, *request.capture);
    if (cut.token != request.cut.token)
        throw Error({fmt::format("the list was made with cut {}, the cut is {}", cut.token, request.cut.token), "cut",
                     fmt::format("Set the cut to {}", cut.evaluatedOnSeen ? "none" : std::to_string(cut.token))});
    const std::vector<const RecordedHead*> heads = headsOf(list, request.layer);
    if (heads.empty())
        throw Error({fmt::format("the list says nothing about layer {}", request.layer.value), "layer",
                     "It has layers " + layersOf(list)});
    HeadSelection undecided;
    undecided.margin = std::numeric_limits<float>::infinity();
    result.selection.heads.assign(static_cast<std::size_t>(request.capture->info().numKvHeads), undecided);
    TakenScores scores;
    for (const RecordedHead* head : heads) takeHead(result, scores, *head);
    completeQueryHeadScores(result, scores);
    result.scores = std::make_shared<const HostTensor>(std::move(scores.ofKvHeads));
    result.queryHeadScores = std::make_shared<const HostTensor>(std::move(scores.ofQueryHeads));
    const bool isCount = list.budgetKept >= 0 && list.budgetKept < 1e12; // false for NaN
    result.requested = list.budgetTokens > 0 ? list.budgetTokens : isCount ? std::llround(list.budgetKept) : 0;
    result.simulated = list.simulated;
    noteMarksOf(list, result);
    if (keptScoresOnly(result))
        result.notes.push_back("the list holds scores of kept tokens alone: rank correlations are over those");
    const std::vector<std::int32_t> missing = headsNotRecorded(result);
    if (!missing.empty())
        result.notes.push_back(fmt::format("the list leaves out KV heads {} of this layer", fmt::join(missing, ", ")));
}

std::vector<std::string> notesOf(std::span<const std::shared_ptr<const RunResult>> layers) {
    std::vector<std::pair<std::string, std::vector<int>>> found; // in the order of their first layers
    for (const auto& result : layers)
        for (const std::string& note : result->notes) {
            auto place = std::ranges::find(found, note, &std::pair<std::string, std::vector<int>>::first);
            if (place == found.end()) place = found.insert(place, {note, {}});
            place->second.push_back(result->request.layer.value);
        }
    std::vector<std::string> notes;
    for (const auto& [note, own] : found) {
        const bool saysIt =
            own.size() == layers.size() || note.find(fmt::format("layer {} ", own.front())) != std::string::npos;
        notes.push_back(saysIt ? note
                               : fmt::format("layer{} {}: {}", own.size() == 1 ? "" : "s", fmt::join(own, ", "), note));
    }
    return notes;
}

std::vector<std::int32_t> headsNotRecorded(const RunResult& result) {
    std::vector<std::int32_t> missing;
    if (!result.request.recorded) return missing;
    std::set<int> present;
    for (const RecordedHead* head : headsOf(*result.request.recorded, result.request.layer))
        present.insert(head->kvHead);
    for (std::int32_t head = 0; head < result.request.capture->info().numKvHeads; ++head)
        if (!present.contains(head)) missing.push_back(head);
    return missing;
}

bool leavesOut(const RunResult& result, std::int32_t kvHead) {
    return result.request.recorded && std::ranges::binary_search(headsNotRecorded(result), kvHead);
}

RecordedSelection recordSelection(std::span<const std::shared_ptr<const RunResult>> layers,
                                  const RecordFilter& filter) {
    assert(!layers.empty());
    const RunRequest& first = layers.front()->request;
    RecordedSelection list = describe(*layers.front(), filter);
    const std::vector<int> heads = chosenHeads(filter, first.capture->info().numKvHeads);
    double attended = 0;
    for (const auto& result : layers) {
        assert(result->request.capture == first.capture && result->request.cut.token == first.cut.token);
        for (const int head : heads) {
            list.heads.push_back(recordedHead(*result, static_cast<std::size_t>(head), filter.withScores));
            attended += result->selection.heads[head].attendedTokens();
        }
    }
    list.budgetKept = list.heads.empty() ? 0 : attended / static_cast<double>(list.heads.size());
    tidyHeads(list, {});
    return list;
}

} // namespace kvscope
