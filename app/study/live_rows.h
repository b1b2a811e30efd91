#pragma once

#include "app/live/live_answers.h"
#include "app/study/pane_request.h"

#include <cmath>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace kvscope {

/// What the model answers after the context that one policy, or one recorded list, leaves.
struct LiveRow {
    std::optional<PaneRequest> pane = {}; ///< its layer is ignored; empty: the full cache
    double kept = 0;     ///< tokens before the cut that a query head attends to, mean over all heads of all layers
    double stored = NAN; ///< what a KV head stores, in tokens with a key and a value each, mean; NaN: not chosen yet
    bool simulated = false;
    std::vector<std::string> notes = {};               ///< of the runs, each once
    double selectMs = 0;                               ///< to choose the tokens in all layers and to send them
    std::optional<live::SentSelection> sent = {};      ///< empty for the full cache
    std::optional<live::ExpectedAnswer> expected = {}; ///< empty without an expected answer
    std::optional<live::GreedyAnswer> greedy = {};     ///< empty where nothing was to be generated
    std::string error = {};                            ///< why the model gives no answer; empty: it gives one
    bool isFull() const { return !pane; }
};

/// Throws Error where a resolved request chooses tokens at another cut than the worker read the context with: what the
/// model says of the context then does not fit what is kept.
void checkCut(const RunRequest& run, const live::LiveCapture& capture);
LiveRow fullCacheRow(const live::LiveCapture& capture);
/// Chooses the row's tokens in every layer and sends them to the worker. The request's cut must be the one at which the
/// worker read the context. Throws Error also for a recorded list that was chosen at another cut or that lacks a layer
/// or a KV head. `chosen` gets what all layers keep before it is sent.
using Chosen = std::function<void(std::span<const live::LayerSelection>)>;
void sendRow(LiveRow& row, const LayerRunner& runner, const live::LiveAnswers& answers, const Checkpoint& checkpoint,
             const Chosen& chosen = {});
/// Like sendRow, but an Error of this row becomes the row's `error` and does not end the others. Throws WorkerLost.
void sendOrRefuse(LiveRow& row, const LayerRunner& runner, const live::LiveAnswers& answers,
                  const Checkpoint& checkpoint, const Chosen& chosen = {});
/// Asks for the loss of the expected answer and for a text (unless mostTokens is 0), in one request each for all rows.
/// A row that fails gets an `error` and is left out from then on, like a refused one. Calls `scored` when the losses
/// are there and the texts are not yet, then `written` for each token.
void askRows(std::span<LiveRow> rows, const live::LiveAnswers& answers, const live::Writing& writing,
             const Checkpoint& checkpoint, const std::function<void()>& scored = {},
             const live::TokenWritten& written = {});

} // namespace kvscope
