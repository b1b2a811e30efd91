// A signal handler may do almost nothing, and a thread inside a library call notices no stop request. So the handlers
// write the signal's number into a pipe, and a separate thread reads it and ends the process if the work does not end.
#include "core/base/termination.h"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <mutex>
#include <set>
#include <string_view>
#include <thread>

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

namespace kvscope {

namespace {

constexpr int kGraceMilliseconds = 700;
constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};

int g_pipe[2] = {-1, -1};
std::atomic<int> g_arrived{0}, g_grace{kGraceMilliseconds};

/// Never destroyed, because the thread may use it while the process exits.
struct Shared {
    std::stop_source stop;
    std::mutex mutex;
    std::multiset<std::string> removed;
};
Shared& shared() {
    static auto& one = *new Shared;
    return one;
}

void passOn(int number) {
    const int before = errno;
    const auto byte = static_cast<unsigned char>(number);
    [[maybe_unused]] const auto written = ::write(g_pipe[1], &byte, 1);
    errno = before;
}

/// The next signal's number; 0 when none arrives in time (-1: no limit).
int nextSignal(int milliseconds) {
    pollfd waiting{g_pipe[0], POLLIN, 0};
    if (::poll(&waiting, 1, milliseconds) <= 0) return 0;
    unsigned char byte = 0;
    return ::read(g_pipe[0], &byte, 1) == 1 ? byte : 0;
}

[[noreturn]] void endProcess(int number) {
    {
        const std::lock_guard lock(shared().mutex);
        for (auto path = shared().removed.rbegin(); path != shared().removed.rend(); ++path) // files, then their folder
            static_cast<void>(std::remove(path->c_str()));
    }
    constexpr std::string_view kClear = "\r\033[K", kMessage = "kvscope: stopped\n";
    if (::isatty(STDERR_FILENO) != 0) static_cast<void>(!::write(STDERR_FILENO, kClear.data(), kClear.size()));
    static_cast<void>(!::write(STDERR_FILENO, kMessage.data(), kMessage.size()));
    ::_exit(128 + number);
}

void watch() {
    int number = 0;
    while (number == 0) number = nextSignal(-1);
    g_arrived = number;
    shared().stop.request_stop();
    nextSignal(g_grace);
    endProcess(number);
}

} // namespace

void endOnSignals() {
    if (g_pipe[0] >= 0 || ::pipe2(g_pipe, O_CLOEXEC) != 0) return;
    ::fcntl(g_pipe[1], F_SETFL, O_NONBLOCK);
    std::signal(SIGXFSZ, SIG_IGN); // the write fails and is reported; by default the process ends without a word
    shared();
    std::thread(watch).detach();
    for (const int number : kSignals) {
        struct sigaction before {};
        struct sigaction action {};
        action.sa_handler = passOn;
        action.sa_flags = SA_RESTART;
        if (::sigaction(number, nullptr, &before) == 0 && before.sa_handler != SIG_IGN)
            ::sigaction(number, &action, nullptr);
    }
}

std::stop_token terminationToken() { return shared().stop.get_token(); }

int terminationCode() { return g_arrived == 0 ? 0 : 128 + g_arrived; }

void endAtOnceOnSignals() { g_grace = 0; }

RemovedOnTermination::RemovedOnTermination(std::string path) : m_path(std::move(path)) {
    const std::lock_guard lock(shared().mutex);
    shared().removed.insert(m_path);
}

RemovedOnTermination::~RemovedOnTermination() {
    const std::lock_guard lock(shared().mutex);
    shared().removed.erase(shared().removed.find(m_path));
}

} // namespace kvscope
