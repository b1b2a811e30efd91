// Requests to a worker and their answers. Everything runs on the calling thread: while a call waits, it reads the
// worker's output, watches for its signs of life, and grants credit for the bytes that arrived.
#include "app/live/live_client.h"

#include "app/live/command_words.h"
#include "app/live/worker_error.h"
#include "core/base/json/json_text.h"
#include "core/base/one_line.h"
#include "core/base/thread_wait.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <string_view>
#include <utility>

namespace kvscope::live {

namespace {

constexpr WorkerProcess::Milliseconds kTick(20); // until a stop is noticed
// Shorter waits for the answer to a cancelled request, after which the worker is killed. While a worker opens a model,
// it has nothing to clean up; when the program ends, it may have to remove a file that it has begun.
constexpr WorkerProcess::Milliseconds kOpening(50), kLeaving(300);
constexpr WorkerProcess::Milliseconds kUnawaited(-1); // the worker is killed, and nothing waits for its end
std::atomic<bool> g_isLeaving = false;
constexpr int kCancelled = -32800, kOutdated = -32801, kNotInitialised = -32002, kOutOfMemory = -32050;

std::vector<std::string> startWords(const std::string& command) {
    std::vector<std::string> words = commandWords(command);
    words.insert(words.end(), {"-m", "kvscope_live", "--stdio"});
    return words;
}

/// The last lines that are not blank, joined: a Python traceback ends with what went wrong. ssh ends its lines with
/// \r\n, and a progress bar starts over with \r.
std::string lastLines(const std::string& log, std::size_t most) {
    std::vector<std::string_view> lines;
    for (std::size_t begin = 0; begin < log.size();) {
        const std::size_t end = std::min(log.find_first_of("\r\n", begin), log.size());
        if (const auto line = std::string_view(log).substr(begin, end - begin);
            line.find_first_not_of(" \t") != std::string_view::npos)
            lines.push_back(line);
        begin = end + 1;
    }
    std::string text;
    for (std::size_t i = lines.size() - std::min(lines.size(), most); i < lines.size(); ++i)
        text += (text.empty() ? "" : " | ") + shortened(oneLine(lines[i]), 160);
    return text;
}

double numberOf(const Json& object, const char* name) {
    const auto found = object.find(name);
    return found != object.end() && found->is_number() ? found->get<double>() : 0;
}

std::int64_t idOf(const Json& params) {
    const auto found = params.find("id");
    return found != params.end() && found->is_number_integer() ? found->get<std::int64_t>() : -1;
}

/// Whether a notification belongs to the request; else it belongs to an older request that was given up.
bool isOf(std::int64_t request, const std::string& method, const Json& params) {
    if (method == "tensors/data") return idOf(params) == request;
    return method != "answer/token" || numberOf(params, "request") == static_cast<double>(request);
}

} // namespace

void leaveWorkers() { g_isLeaving = true; }

struct LiveClient::Waiting {
    std::int64_t id = 0;
    const Checkpoint& checkpoint;
    const Notified& notified;
    bool isOpening = false;
    Clock::time_point lastSign = Clock::now();
    std::optional<Clock::time_point> cancelled = {};
    std::optional<Frame> answer = {};
};

LiveClient::LiveClient(WorkerOptions options, const Checkpoint& checkpoint)
    : m_options(std::move(options)), m_process(startWords(m_options.command)) {
    m_worker = call("initialize",
                    {{"protocol", {1, 0}},
                     {"client", {{"name", "kvscope"}, {"version", KVSCOPE_VERSION}}},
                     {"parent_pid", nullptr}, // it may run on another machine; it ends when its input ends
                     {"locale", "C"}},
                    {}, checkpoint);
    m_options.startSays = {}; // its references may dangle from here on
    const Json protocol = m_worker.value("protocol", Json());
    if (!protocol.is_array() || protocol.empty() || protocol[0] != 1)
        fail({.sentence = fmt::format("the worker speaks version {} of the protocol, this program version 1",
                                      jsonLine(protocol)),
              .remedy = "Update the older of the two"});
}

bool LiveClient::can(const char* capability) const {
    const Json named = m_worker.value("capabilities", Json::object());
    return named.is_object() && named.value(capability, Json()) == true;
}

void LiveClient::send(const Json& message, std::vector<std::string> blobs) {
    m_pending += frameBytes({message, std::move(blobs)});
}

Json LiveClient::call(const std::string& method, Json params, std::vector<std::string> blobs,
                      const Checkpoint& checkpoint, const Notified& notified) {
    const ThreadWait wait(ThreadWait::After::AtOnce); // for the turn, and for the worker
    const Turns::Turn turn(m_turns, checkpoint);
    if (m_failure) throw WorkerLost(*m_failure);
    const bool isReading = method == "context/read", isWriting = params.value("capture_to", Json()).is_string();
    const bool isImporting = m_worker.is_null();
    Waiting waiting{.id = ++m_lastId,
                    .checkpoint = checkpoint,
                    .notified = notified,
                    .isOpening = isImporting || method == "model/open" || (isReading && !isWriting)};
    send({{"jsonrpc", "2.0"}, {"id", waiting.id}, {"method", method}, {"params", std::move(params)}}, std::move(blobs));
    Json result = ask(waiting);
    m_hasContext = m_hasContext || isReading;
    return result;
}

std::string LiveClient::lost() {
    const ThreadWait wait(ThreadWait::After::AtOnce);
    const Turns::Turn turn(m_turns, {});
    try {
        if (!m_failure && m_process.hasEnded()) failAsDead();
    } catch (const WorkerLost&) { // the error is in m_failure
    }
    return m_failure ? m_failure->what() : std::string();
}

Json LiveClient::ask(Waiting& waiting) {
    while (!waiting.answer) {
        receive(waiting);
        if (!waiting.answer) checkPatience(waiting);
    }
    if (waiting.cancelled) throw Cancelled{}; // whatever it answered
    Json& message = waiting.answer->message;
    if (const auto error = message.find("error"); error != message.end()) {
        if (!error->is_object()) fail({.sentence = "the worker's error is no object"});
        const double code = numberOf(*error, "code");
        if (code == kCancelled || code == kOutdated) throw Cancelled{};
        if (code == kNotInitialised) fail(workerError(*error).parts());
        if (code == kOutOfMemory) throw OutOfMemory(workerError(*error).parts());
        throw workerError(*error);
    }
    if (!message.contains("result")) fail({.sentence = "the worker's answer has neither a result nor an error"});
    return std::move(message["result"]);
}

void LiveClient::receive(Waiting& waiting) {
    const std::string bytes = m_process.exchange(m_pending, kTick);
    if (!bytes.empty()) waiting.lastSign = Clock::now();
    if (m_options.startSays && !m_reader.isGreeted())
        if (const std::string line = lastLines(m_process.log(), 1); line != m_startSaid)
            m_options.startSays(m_startSaid = line);
    m_reader.add(bytes);
    try {
        while (auto frame = m_reader.next()) handle(*frame, waiting);
    } catch (const Error& error) {
        fail(error.parts());
    }
    if (m_process.isOver() && !waiting.answer) failAsDead();
}

void LiveClient::handle(Frame& frame, Waiting& waiting) {
    const Json& message = frame.message;
    if (const std::string method = textOf(message, "method"); !method.empty())
        return handleNotification(method, frame, waiting);
    const std::int64_t id = idOf(message);
    if (id < 1 || id > m_lastId) fail({.sentence = "the worker answered what nobody asked"});
    if (id == waiting.id && !waiting.answer) waiting.answer = std::move(frame); // else its request was given up
}

void LiveClient::handleNotification(const std::string& method, Frame& frame, Waiting& waiting) {
    const Json params = frame.message.value("params", Json::object());
    if (!params.is_object()) fail({.sentence = "the worker's " + method + " has no members"});
    std::size_t bytes = 0;
    for (const std::string& blob : frame.blobs) bytes += blob.size();
    if (method == "$/alive" || method == "$/progress") {
        m_activity = textOf(params, "stage");
        if (const double layer = numberOf(params, "layer"); layer > 0) m_activity += fmt::format(", layer {}", layer);
        if (const double total = numberOf(params, "total");
            total > 0 && !waiting.cancelled && idOf(params) == waiting.id)
            try {
                waiting.checkpoint.at(std::clamp(numberOf(params, "done"), 0.0, total), total);
            } catch (const Cancelled&) { // checkPatience sees it
            }
    } else if (waiting.notified && !waiting.cancelled && isOf(waiting.id, method, params)) {
        try {
            understand(method, [&] { waiting.notified(method, params, frame.blobs); });
        } catch (const Cancelled&) { // as above
        }
    }
    if (bytes > 0)
        send({{"jsonrpc", "2.0"}, {"method", "stream/credit"}, {"params", {{"id", waiting.id}, {"bytes", bytes}}}});
}

void LiveClient::checkPatience(Waiting& waiting) {
    const auto now = Clock::now();
    if (!waiting.cancelled) try {
            waiting.checkpoint.stopPoint();
        } catch (const Cancelled&) {
            waiting.cancelled = now;
            send({{"jsonrpc", "2.0"}, {"method", "$/cancel"}, {"params", {{"id", waiting.id}}}});
        }
    const bool isStarted = m_reader.isGreeted();
    const bool isImporting = m_worker.is_null(); // imports may delay the sign of life on a busy machine
    const auto patience = isStarted && !isImporting ? m_options.silence : m_options.start;
    const bool isGivenUp = this->isGivenUp(waiting);
    if (!isGivenUp && now - waiting.lastSign <= patience) return;
    m_process.end(isGivenUp ? kUnawaited : WorkerProcess::Milliseconds(0));
    try {
        fail({.sentence = isStarted
                              ? fmt::format("the worker gives no sign of life{}",
                                            m_activity.empty() ? "" : " (" + m_activity + ")")
                              : "the worker did not greet within " + std::to_string(patience.count() / 1000) + " s",
              .remedy = isStarted
                            ? "Start it again; if it is on another machine, look after the connection"
                            : "Try the command in a terminal: it may ask for a password, wait for a machine, hold "
                              "its output back (conda run needs --no-capture-output), or drop the arguments -m "
                              "kvscope_live --stdio (bash -c needs \"$@\")"});
    } catch (const Error&) {
        if (waiting.cancelled) throw Cancelled{};
        throw;
    }
}

bool LiveClient::isGivenUp(const Waiting& waiting) const {
    if (!waiting.cancelled) return false;
    if (!m_reader.isGreeted()) return true;
    const auto since = Clock::now() - *waiting.cancelled;
    if (waiting.isOpening) return since > std::min(m_options.cancel, kOpening);
    if (g_isLeaving) return since > std::min(m_options.cancel, kLeaving);
    return !m_hasContext && since > m_options.cancel;
}

void LiveClient::fail(Error::Parts parts) {
    m_process.end(WorkerProcess::Milliseconds(0));
    const std::string banner = m_reader.isGreeted() ? std::string() : m_reader.banner() + "\n";
    if (const std::string lines = lastLines(banner + m_process.log(), 3); !lines.empty())
        parts.sentence += fmt::format("; its last words: {}", lines);
    m_failure.emplace(std::move(parts));
    throw WorkerLost(*m_failure);
}

void LiveClient::failAsDead() {
    m_process.end(WorkerProcess::Milliseconds(1000));
    const std::string& log = m_process.log();
    if (log.find("No module named kvscope_live") != std::string::npos) {
        m_failure.emplace(
            Error::Parts{.sentence = "this Python has no module kvscope_live",
                         .place = m_options.command,
                         .remedy = fmt::format("Install it with `{} -m pip install TOOLS` (uv: `uv add TOOLS`): "
                                               "share/kvscope/kvscope_tools.tar.gz of an installed "
                                               "program, resources/python of its sources",
                                               m_options.command)});
        throw WorkerLost(*m_failure);
    }
    const int code = m_process.exitCode();
    const bool isStarted = m_reader.isGreeted();
    std::string remedy = "Read its last words, and start it again";
    if (code == 137)
        remedy = "docker stop kills like that: start it again. So does the system when memory is short: choose a "
                 "shorter text, or bf16 numbers";
    if (code == 0 && m_worker.is_null()) // even if it has greeted: conda run prints at the end
        remedy = "A worker ends like that when its input is closed: docker and podman need -i, conda run needs "
                 "--no-capture-output";
    if (code == 126 || code == 127) remedy = "Give a command that exists, with its path"; // 126: of docker exec
    if (!isStarted && log.find("not a TTY") != std::string::npos)
        remedy = "Leave out the option -t (docker, podman, ssh)";
    if (code == 255) // of ssh
        remedy = isStarted ? "The connection was lost, or the worker there was killed, as when memory is short: start "
                             "it again"
                           : "Try the command in a terminal: ssh could not reach its host, does not know its key, or "
                             "asks for a password";
    fail({.sentence = fmt::format("the worker {}{}", m_process.ending(),
                                  isStarted && m_reader.waiting() > 0 ? " in the middle of a message"
                                  : isStarted                         ? ""
                                                                      : " before it greeted"),
          .place = m_options.command,
          .remedy = remedy});
}

} // namespace kvscope::live
