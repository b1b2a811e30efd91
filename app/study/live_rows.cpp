// Runs a policy on all layers of a live context and asks for the model's answers after what it keeps.
#include "app/study/live_rows.h"

#include "app/live/live_client.h"
#include "core/base/error.h"
#include "core/run/cache_positions.h"
#include "core/run/record_results.h"
#include "core/run/stored_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

namespace kvscope {

namespace {

/// The rows that have not failed, and their selections; none for the full cache.
struct Asked {
    std::vector<std::size_t> places;
    std::vector<std::optional<std::string>> ids;

    explicit Asked(std::span<const LiveRow> rows) {
        for (std::size_t i = 0; i < rows.size(); ++i) {
            if (!rows[i].error.empty()) continue;
            places.push_back(i);
            ids.push_back(rows[i].sent ? std::optional(rows[i].sent->id) : std::nullopt);
        }
    }
};

} // namespace

void checkCut(const RunRequest& run, const live::LiveCapture& capture) {
    if (!run.cut.evaluatedOnSeen && run.cut.token == capture.cut()) return;
    throw Error(
        {fmt::format("the model read the context with its cut at {}, and these tokens are chosen {}", capture.cut(),
                     run.cut.evaluatedOnSeen ? "without a cut" : fmt::format("at {}", run.cut.token)),
         "cut", fmt::format("Set the cut to {}", capture.cut())});
}

LiveRow fullCacheRow(const live::LiveCapture& capture) {
    const auto all = static_cast<double>(capture.cut());
    return {.kept = all, .stored = all};
}

void sendRow(LiveRow& row, const LayerRunner& runner, const live::LiveAnswers& answers, const Checkpoint& checkpoint,
             const Chosen& chosen) {
    if (row.isFull()) return;
    const auto start = std::chrono::steady_clock::now();
    RunRequest request = resolvePane(*row.pane);
    request.capture = answers.capture();
    request.measure = false;
    checkCut(request, *answers.capture());
    if (hasCachePositions(request))
        throw Error({"the policy re-assigns positions inside the cache, and the model of a live context keeps them",
                     "positions", "Choose a variant with positions=kept"});
    const auto& layers = request.capture->info().layers;
    std::vector<std::shared_ptr<const RunResult>> results;
    std::vector<live::LayerSelection> selections;
    double kept = 0, stored = 0, bytes = 0;
    for (const LayerInfo& layer : layers) {
        request.layer = layer.layer;
        results.push_back(runner.run(request, checkpoint.step(results.size(), layers.size())));
        const RunResult& result = *results.back();
        if (!headsNotRecorded(result).empty())
            throw Error(
                {fmt::format("the list leaves out KV heads of layer {}, and the model needs all", layer.layer.value),
                 "", "Write the list without --kv-heads"});
        selections.push_back({layer.layer, &result.selection});
        for (const HeadSelection& head : result.selection.heads) {
            kept += head.attendedTokens();
            stored += storedTokens(head, request.capture->info());
        }
        bytes += static_cast<double>(storedBytes(result));
        row.simulated = row.simulated || result.simulated;
    }
    row.notes = notesOf(results);
    const double heads = static_cast<double>(layers.size()) * request.capture->info().numKvHeads;
    row.kept = kept / heads;
    row.stored = stored / heads;
    if (chosen) chosen(selections);
    row.sent = answers.send(resultKey(*row.pane), selections, checkpoint.silent());
    row.sent->bytes = bytes; // the worker counts every kept position once, with its key and its value
    row.selectMs = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

void sendOrRefuse(LiveRow& row, const LayerRunner& runner, const live::LiveAnswers& answers,
                  const Checkpoint& checkpoint, const Chosen& chosen) {
    try {
        sendRow(row, runner, answers, checkpoint, chosen);
    } catch (const live::WorkerLost&) {
        throw; // it concerns all rows
    } catch (const Error& error) {
        row.error = error.what();
    }
}

void askRows(std::span<LiveRow> rows, const live::LiveAnswers& answers, const live::Writing& writing,
             const Checkpoint& checkpoint, const std::function<void()>& scored, const live::TokenWritten& written) {
    if (const Asked asked(rows); !answers.answer().empty() && !asked.ids.empty()) {
        const auto expected = answers.score(asked.ids, checkpoint.part(0, 0.5));
        for (std::size_t i = 0; i < expected.size(); ++i) {
            LiveRow& row = rows[asked.places[i]];
            row.error = expected[i].error;
            if (row.error.empty()) row.expected = expected[i];
        }
        if (scored) scored();
    }
    const Asked asked(rows);
    if (writing.mostTokens == 0 || asked.ids.empty()) return;
    const auto greedy = answers.generate(asked.ids, writing, checkpoint.part(0.5, 1),
                                         [&](std::size_t row, std::size_t index, const std::string& text) {
                                             if (written) written(asked.places[row], index, text);
                                         });
    for (std::size_t i = 0; i < greedy.size(); ++i) {
        LiveRow& row = rows[asked.places[i]];
        row.error = greedy[i].error;
        if (row.error.empty()) row.greedy = greedy[i];
    }
}

} // namespace kvscope
