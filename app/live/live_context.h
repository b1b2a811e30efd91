#pragma once

#include "app/live/live_capture.h"
#include "core/capture/cut.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace kvscope::live {

/// All that opening a live context takes, and all that a session keeps of it.
struct LiveDescription {
    std::string command = "python3"; ///< as WorkerOptions::command
    ModelChoice model;
    std::vector<TextPart> parts; ///< the context, then question and answer where there are any
    PromptForm form;
    std::string cut = "default"; ///< as Cut, or "question"
    std::string captureTo;       ///< a file that the worker writes on its own disk; not part of the text below

    bool operator==(const LiveDescription&) const = default;
};

/// The description as one JSON object, and back. Throws Error naming the key
/// that is missing or has a wrong value.
std::string textOf(const LiveDescription& description);
LiveDescription descriptionOf(const std::string& text);

/// "tinylm": the model's last name, for titles.
std::string modelName(const LiveDescription& description);
/// The text of all parts of a kind.
std::string partText(const LiveDescription& description, SegmentKind kind);
/// The cut as Cut::resolve takes it.
std::string cutOf(const LiveDescription& description);

/// Where the cut lies in the description's tokens. Throws Error for none: then nothing is pruned before the answer.
Cut resolvedCut(const LiveDescription& description, const TokenTable& prompt);

/// Called with what opening does now, "loading tinylm", on the thread that opens.
using StageReport = std::function<void(const std::string& stage)>;

/// Called with the worker before it loads anything, on the thread that opens.
using WorkerReport = std::function<void(const LiveClient& client)>;

/// Keeps a running worker for the context that is opened next: starting one takes seconds. Callable from any thread.
void leaveSpareWorker(std::shared_ptr<LiveClient> worker);

/// Starts a worker, or takes the spare one if it runs the same command; loads the model, makes tokens, resolves
/// the cut and reads the context. Throws Error, Cancelled.
std::shared_ptr<const LiveCapture> openLive(const LiveDescription& description, const Checkpoint& checkpoint,
                                            const StageReport& stage = {}, const WorkerReport& started = {});

} // namespace kvscope::live
