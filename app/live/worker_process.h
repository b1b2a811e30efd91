#pragma once

#include <chrono>
#include <string>
#include <vector>

#include <sys/types.h>

namespace kvscope::live {

/// All workers have the niceness of the thread that calls this first, or else of the one that starts the first worker.
/// A worker started by a thread of lowered priority would otherwise compute at that priority.
void keepNiceness();

/// A program with pipes on its standard streams, in a session of its own, without a terminal. The program and what it
/// started in its process group end with the object, and it gets SIGTERM when this program ends in any way. To be used
/// by one thread at a time.
class WorkerProcess {
public:
    using Milliseconds = std::chrono::milliseconds;

    /// Throws Error when the program cannot be started.
    explicit WorkerProcess(const std::vector<std::string>& words);
    ~WorkerProcess(); ///< end(700 ms)
    WorkerProcess(const WorkerProcess&) = delete;
    WorkerProcess& operator=(const WorkerProcess&) = delete;

    /// Writes as much of `pending` as fits, removes it there, and returns what came on standard output. Returns as soon
    /// as anything happened, and after `most` at the latest.
    std::string exchange(std::string& pending, Milliseconds most);
    bool isOver() const { return m_out < 0; } ///< standard output was closed
    bool hasEnded() const;                    ///< the process itself; never waits
    /// A descriptor that can be read from once the process has ended, valid as long as this object; -1: the system has
    /// none.
    int endNotice() const { return m_notice; }
    /// Closes its standard input, gives it this long to end, then ends its group, by SIGTERM and, where that is not
    /// enough, SIGKILL. Below 0: returns without waiting for the end.
    void end(Milliseconds grace);
    /// After end(): "ended with exit code 1", "was killed by signal 11".
    std::string ending() const;
    int exitCode() const; ///< after end(); as a shell gives it: 128 + the signal's number
    /// The last 64 KiB of standard error.
    const std::string& log() const { return m_log; }

private:
    void readLog();

    pid_t m_child = -1;
    int m_notice = -1;
    int m_in = -1, m_out = -1, m_error = -1; ///< the parent's ends; -1: closed
    int m_status = 0;                        ///< of waitpid
    std::vector<char> m_block;               ///< for reading
    std::string m_log;
};

} // namespace kvscope::live
