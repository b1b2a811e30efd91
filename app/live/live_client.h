#pragma once

#include "app/live/frame.h"
#include "app/live/turns.h"
#include "app/live/worker_process.h"
#include "core/base/checkpoint.h"
#include "core/base/error.h"

#include <chrono>
#include <functional>
#include <optional>
#include <string>

namespace kvscope::live {

/// How a worker is started: the words of `command` (command_words.h), followed by `-m kvscope_live --stdio`.
struct WorkerOptions {
    std::string command = "python3";
    WorkerProcess::Milliseconds start{600'000};  ///< until the greeting; a cluster may queue the worker
    WorkerProcess::Milliseconds silence{30'000}; ///< during a call; a worker gives a sign of life every 2 s
    /// Until the answer to a cancelled request; then the worker is killed. A call waits for one that has read a context
    /// as long as it gives signs of life: reading the context again takes longer.
    WorkerProcess::Milliseconds cancel{3'000};
    /// Called before the greeting, on the thread that starts the worker, with each new last line of its log, such as
    /// srun's message that its job is queued.
    std::function<void(const std::string& line)> startSays = {};
};

/// To be called when the program ends: from now on a cancelled call waits for its worker 0.3 s at most.
void leaveWorkers();

/// The process of a worker is gone, or it sent something that is no answer: no call to it can succeed any more.
class WorkerLost : public Error {
public:
    using Error::Error;
};

/// The worker's machine is short of memory for what was asked.
class OutOfMemory : public Error {
public:
    using Error::Error;
};

/// A running worker and the requests to it. A call blocks. Several threads may call: they take turns in the order in
/// which they came. A call is cancelled by its checkpoint, both before and during its turn, so the newest request never
/// waits for an older result that nobody wants. The worker's output is read only while a call waits. The worker ends
/// with the object, and with this program. After a failure of the process every call throws
/// that failure: make another client and repeat.
class LiveClient {
public:
    /// Starts the worker and agrees on the protocol. Throws Error with the remedy, or Cancelled.
    LiveClient(WorkerOptions options, const Checkpoint& checkpoint);
    ~LiveClient() = default; ///< see ~WorkerProcess
    LiveClient(const LiveClient&) = delete;
    LiveClient& operator=(const LiveClient&) = delete;

    /// What the worker answered to `initialize`: its versions, devices and capabilities.
    const Json& worker() const { return m_worker; }
    /// Whether the worker named this capability.
    bool can(const char* capability) const;
    /// A descriptor that can be read from once the worker's process has ended; -1: the system has none.
    int endNotice() const { return m_process.endNotice(); }
    const WorkerOptions& options() const { return m_options; }
    /// Why nothing can be asked any more; empty: the worker runs. Waits for a call that is under way.
    std::string lost();
    /// The result of a request. Reports the worker's progress. Throws Error for the worker's error, for its death, for
    /// silence and for what is no answer; Cancelled when the checkpoint stops, and for a result that is outdated.
    Json call(const std::string& method, Json params, std::vector<std::string> blobs, const Checkpoint& checkpoint,
              const Notified& notified = {});

private:
    using Clock = std::chrono::steady_clock;
    struct Waiting; ///< one call

    Json ask(Waiting& waiting);
    void receive(Waiting& waiting);
    void handle(Frame& frame, Waiting& waiting);
    void handleNotification(const std::string& method, Frame& frame, Waiting& waiting);
    void checkPatience(Waiting& waiting);
    bool isGivenUp(const Waiting& waiting) const;
    void send(const Json& message, std::vector<std::string> blobs = {});
    [[noreturn]] void fail(Error::Parts parts);
    [[noreturn]] void failAsDead();

    WorkerOptions m_options;
    Turns m_turns; ///< of the calls
    WorkerProcess m_process;
    FrameReader m_reader;
    std::string m_pending; ///< bytes that the worker has not taken yet
    std::int64_t m_lastId = 0;
    std::string m_startSaid; ///< the last line that m_options.startSays got
    std::string m_activity;  ///< what the worker last said it was doing
    std::optional<WorkerLost> m_failure;
    Json m_worker;
    bool m_hasContext = false;
};

/// Runs `read` on an answer. Throws Error, naming the method, where the answer lacks a member or has one of another
/// type: what comes from a worker is untrusted.
template <class Read> auto understand(const std::string& method, const Read& read) {
    try {
        return read();
    } catch (const Json::exception& wrong) {
        throw Error({.sentence = "the worker's answer to " + method + " is not what the protocol says",
                     .place = wrong.what(),
                     .remedy = "Give worker and program the same version"});
    }
}

} // namespace kvscope::live
