// Writes the stack of a crash. Only async-signal-safe calls below, but for backtrace(), which is so once it was called.
#include "app/window/crash_report.h"

#include <array>
#include <csignal>
#include <cstring>
#include <string_view>

#include <execinfo.h>
#include <fcntl.h>
#include <unistd.h>

namespace kvscope {

namespace {

std::array<char, 4096> g_file{};
std::array<char, 1 << 16> g_stack{}; // a crash may be that the thread's own stack is full

void say(int file, std::string_view text) { static_cast<void>(!::write(file, text.data(), text.size())); }

void sayNumber(int file, int number) {
    const char digits[2] = {static_cast<char>('0' + number / 10 % 10), static_cast<char>('0' + number % 10)};
    say(file, {digits, 2});
}

void onCrash(int number) {
    std::array<void*, 128> frames{};
    const int count = ::backtrace(frames.data(), static_cast<int>(frames.size()));
    const int file = ::open(g_file.data(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (file >= 0) {
        say(file, "kvscope crashed, signal ");
        sayNumber(file, number);
        say(file, "\n");
        ::backtrace_symbols_fd(frames.data(), count, file);
        ::close(file);
    }
    say(STDERR_FILENO, "kvscope: crashed, signal ");
    sayNumber(STDERR_FILENO, number);
    say(STDERR_FILENO, "; what was shown is offered at the next start, the stack is in ");
    say(STDERR_FILENO, g_file.data());
    say(STDERR_FILENO, "\n");
    ::raise(number); // SA_RESETHAND: the usual end
}

} // namespace

void reportCrashes(const std::string& file) {
    if (file.size() >= g_file.size()) return;
    std::memcpy(g_file.data(), file.c_str(), file.size() + 1);
    void* first = nullptr;
    ::backtrace(&first, 1); // loads its library now
    stack_t stack{};
    stack.ss_sp = g_stack.data();
    stack.ss_size = g_stack.size();
    ::sigaltstack(&stack, nullptr);
    for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) {
        struct sigaction action {};
        action.sa_handler = onCrash;
        action.sa_flags = static_cast<int>(SA_RESETHAND | SA_ONSTACK | SA_NODEFER);
        ::sigaction(number, &action, nullptr);
    }
}

} // namespace kvscope
