// Starts a worker, talks to it over pipes, and leaves nothing of it behind.
#include "app/live/worker_process.h"

#include "core/base/error.h"
#include "core/base/thread_wait.h"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <deque>
#include <functional>
#include <future>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace kvscope::live {

namespace {

constexpr std::size_t kMostLog = 64 << 10;
constexpr WorkerProcess::Milliseconds kTerm(500); // from SIGTERM to SIGKILL
using Clock = std::chrono::steady_clock;

std::string reason(int error) { return std::generic_category().message(error); }

void shut(int& descriptor) {
    if (descriptor >= 0) ::close(descriptor);
    descriptor = -1;
}

/// Both ends of a pipe, closed with the object unless they were taken. Neither has a number below 3, which pipe2 gives
/// in a program that was started without standard streams: the child's dup2 would overwrite it.
struct Pipe {
    int ends[2] = {-1, -1};
    Pipe() {
        bool isMade = ::pipe2(ends, O_CLOEXEC) == 0;
        for (int& end : ends)
            if (isMade && end < 3) {
                const int higher = ::fcntl(end, F_DUPFD_CLOEXEC, 3);
                isMade = higher >= 0;
                ::close(std::exchange(end, higher));
            }
        if (!isMade)
            throw Error({.sentence = "cannot make a pipe: " + reason(errno), .remedy = "Close other programs"});
    }
    ~Pipe() {
        for (int& end : ends) shut(end);
    }
    Pipe(const Pipe&) = delete;
    Pipe& operator=(const Pipe&) = delete;
    int take(int end) { return std::exchange(ends[end], -1); }
};

/// Runs in the child between fork and exec, where only async-signal-safe functions may be called. The error number of a
/// failed exec goes into `failure`. In a session of its own the child has no terminal, where ssh would ask for a
/// password and stop as a background process. When this program ends, the child gets SIGTERM, not SIGKILL: srun then
/// cancels its job.
[[noreturn]] void becomeWorker(char* const* words, pid_t parent, const std::array<int, 3>& streams, int failure) {
    ::setsid();
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (::getppid() != parent) ::_exit(1);
    for (int stream = 0; stream < 3; ++stream)
        if (::dup2(streams[static_cast<std::size_t>(stream)], stream) < 0) ::_exit(1);
    ::execvp(words[0], words);
    const int error = errno;
    static_cast<void>(!::write(failure, &error, sizeof error));
    ::_exit(127);
}

/// The one thread that forks, which lives as long as the program: a child inherits the niceness of the thread that
/// forked it, and PR_SET_PDEATHSIG ends it with that thread.
class Forker {
public:
    static Forker& only() {
        static Forker& forker = *new Forker;
        return forker;
    }
    pid_t fork(std::function<pid_t()> how) {
        std::packaged_task<pid_t()> task(std::move(how));
        std::future<pid_t> child = task.get_future();
        {
            const std::lock_guard lock(m_mutex);
            m_tasks.push_back(std::move(task));
        }
        m_wake.notify_one();
        return child.get();
    }

private:
    Forker() {
        std::thread([this] {
            for (std::unique_lock lock(m_mutex);; m_tasks.pop_front()) {
                m_wake.wait(lock, [this] { return !m_tasks.empty(); });
                m_tasks.front()();
            }
        }).detach();
    }

    std::mutex m_mutex;
    std::condition_variable m_wake;
    std::deque<std::packaged_task<pid_t()>> m_tasks; ///< guarded by m_mutex
};

/// A write to a worker that is gone fails instead of ending this process.
ssize_t writeQuietly(int descriptor, const std::string& bytes) {
    sigset_t pipe, before;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe, &before);
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    const int error = errno;
    if (written < 0 && error == EPIPE) {
        const timespec now{0, 0};
        sigtimedwait(&pipe, nullptr, &now);
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    errno = error;
    return written;
}

bool isEnded(pid_t child) {
    siginfo_t state{};
    return ::waitid(P_PID, static_cast<id_t>(child), &state, WEXITED | WNOHANG | WNOWAIT) != 0 || state.si_pid != 0;
}

/// Waits for a child whose group got SIGTERM, takes its status, and kills what is left of the group.
void killGroup(pid_t child, int* status) {
    for (const auto until = Clock::now() + kTerm; !isEnded(child) && Clock::now() < until;)
        std::this_thread::sleep_for(WorkerProcess::Milliseconds(2));
    ::kill(-child, SIGKILL); // what is left in its group, too
    while (::waitpid(child, status, 0) < 0 && errno == EINTR) {
    }
}

} // namespace

void keepNiceness() { Forker::only(); }

WorkerProcess::WorkerProcess(const std::vector<std::string>& words) {
    std::vector<char*> arguments;
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    Pipe in, out, error, failure;
    const pid_t parent = ::getpid();
    int refused = 0;
    m_child = Forker::only().fork([&] {
        const pid_t child = ::fork();
        if (child == 0)
            becomeWorker(arguments.data(), parent, {in.ends[0], out.ends[1], error.ends[1]}, failure.ends[1]);
        refused = errno;
        return child;
    });
    if (m_child < 0)
        throw Error({.sentence = "cannot start a process: " + reason(refused), .remedy = "Close other programs"});
    shut(failure.ends[1]);
    int number = 0;
    if (::read(failure.ends[0], &number, sizeof number) == sizeof number) {
        ::waitpid(m_child, nullptr, 0);
        const bool isAssignment = words.front().find('=') != std::string::npos; // which only a shell understands
        throw Error({.sentence = fmt::format("cannot start '{}': {}", words.front(), reason(number)),
                     .place = "--python",
                     .remedy = isAssignment ? "Write 'env' before variables, like env HF_HOME=/data/hf python3"
                                            : "Give a Python, like python3, or a command that runs one"});
    }
    m_notice = static_cast<int>(::syscall(SYS_pidfd_open, m_child, 0)); // closed on exec
    m_in = in.take(1);
    m_out = out.take(0);
    m_error = error.take(0);
    for (const int end : {m_in, m_out, m_error}) ::fcntl(end, F_SETFL, O_NONBLOCK);
}

WorkerProcess::~WorkerProcess() {
    end(Milliseconds(700));
    shut(m_notice);
}

void WorkerProcess::readLog() {
    std::array<char, 16 << 10> block;
    ssize_t got = 0;
    while (m_error >= 0 && (got = ::read(m_error, block.data(), block.size())) != 0) {
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return; // nothing more for now
        m_log.append(block.data(), static_cast<std::size_t>(got));
        if (m_log.size() > kMostLog) m_log.erase(0, m_log.size() - kMostLog);
    }
    shut(m_error);
}

std::string WorkerProcess::exchange(std::string& pending, Milliseconds most) {
    std::array<pollfd, 3> waiting = {
        {{m_out, POLLIN, 0}, {m_error, POLLIN, 0}, {pending.empty() ? -1 : m_in, POLLOUT, 0}}};
    if (::poll(waiting.data(), waiting.size(), static_cast<int>(most.count())) <= 0) return {};
    if (waiting[1].revents != 0) readLog();
    if (waiting[2].revents != 0) {
        const ssize_t written = writeQuietly(m_in, pending);
        if (written > 0) pending.erase(0, static_cast<std::size_t>(written));
        if (written < 0 && errno != EAGAIN && errno != EINTR) { // it reads no more, but its output is still read
            pending.clear();
            shut(m_in);
        }
    }
    if (waiting[0].revents == 0) return {};
    m_block.resize(256 << 10);
    const ssize_t got = ::read(m_out, m_block.data(), m_block.size());
    const bool isLater = got < 0 && (errno == EAGAIN || errno == EINTR);
    if (got <= 0 && !isLater) shut(m_out);
    return {m_block.data(), got > 0 ? static_cast<std::size_t>(got) : 0};
}

bool WorkerProcess::hasEnded() const { return isEnded(m_child); }

void WorkerProcess::end(Milliseconds grace) {
    if (m_child < 0) return;
    const ThreadWait wait(ThreadWait::After::AtOnce);
    shut(m_in);
    std::string nothing;
    for (const auto until = Clock::now() + grace; !hasEnded() && Clock::now() < until;)
        exchange(nothing, Milliseconds(10)); // a full pipe must not block it
    ::kill(-m_child, SIGTERM);   // srun then cancels its job; if killed, it would leave the job running or queued
    if (grace < Milliseconds(0)) // waits neither for the system to free gigabytes nor for the status
        std::thread(killGroup, m_child, nullptr).detach();
    else
        killGroup(m_child, &m_status);
    m_child = -1;
    readLog();
    shut(m_out);
    shut(m_error);
}

std::string WorkerProcess::ending() const {
    return WIFSIGNALED(m_status) ? fmt::format("was killed by signal {}", WTERMSIG(m_status))
                                 : fmt::format("ended with exit code {}", WEXITSTATUS(m_status));
}

int WorkerProcess::exitCode() const { return WIFSIGNALED(m_status) ? 128 + WTERMSIG(m_status) : WEXITSTATUS(m_status); }

} // namespace kvscope::live
