#pragma once

#include <stop_token>
#include <string>

namespace kvscope {

/// From now on SIGINT, SIGTERM and SIGHUP end this process within a second, whatever it does: at first a stop is
/// requested of `terminationToken()`, and the work may end in its own way. What still runs after 0.7 seconds (in a
/// library, say), or at a second signal, is ended here: what is registered as RemovedOnTermination is removed, and the
/// process exits with 128 + the signal's number. A signal that the process was started to ignore stays ignored.
/// To be called once, first in main.
void endOnSignals();

std::stop_token terminationToken();
/// 128 + the number of the signal that has arrived; 0 without one.
int terminationCode();
/// Nothing waits for a stop any more: the next signal ends the process at once. For the window.
void endAtOnceOnSignals();

/// A file or an empty folder that is removed when a signal ends the process.
class RemovedOnTermination {
public:
    explicit RemovedOnTermination(std::string path);
    ~RemovedOnTermination(); ///< the path is no longer registered; nothing is removed
    RemovedOnTermination(const RemovedOnTermination&) = delete;
    RemovedOnTermination& operator=(const RemovedOnTermination&) = delete;

private:
    std::string m_path;
};

} // namespace kvscope
