#pragma once

#include <stop_token>
#include <string>

namespace kvscope {

/// From now on SIGINT, SIGTERM and SIGHUP end this process within a second, whatever it does. The first signal requests
/// a stop of `terminationToken()`, so that the work can end by itself. If the process still runs after 0.7 seconds (in
/// a library call, say), or at a second signal, all paths of RemovedOnTermination objects are removed and the process
/// exits with 128 + the first signal's number. A signal that the process was started to ignore stays ignored.
/// A write beyond the process's limit of file sizes fails like one on a full disk.
/// Call it once, first in main.
void endOnSignals();

std::stop_token terminationToken();
/// 128 + the number of the signal that has arrived; 0 without one.
int terminationCode();
/// The next signal ends the process at once, without the 0.7 seconds in which work can end by itself. For the window.
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
