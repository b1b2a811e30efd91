// Creates engine, runner, workers, workbench and main window.
#include "app/window/run_window.h"

#include "app/live/live_client.h"
#include "app/study/resources.h"
#include "app/text/qt_text_service.h"
#include "app/window/actions/engine_controller.h"
#include "app/window/actions/recovery.h"
#include "app/window/main_window.h"
#include "app/window/style/appearance.h"
#include "app/window/style/system_theme.h"
#include "app/window/widgets/notice_strip.h"
#include "core/base/one_line.h"
#include "core/base/termination.h"
#include "core/engine/engine.h"

#include <QApplication>
#include <QSurfaceFormat>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <string_view>

#include <execinfo.h>
#include <fcntl.h>
#include <unistd.h>

namespace kvscope {

namespace {

std::array<char, 4096> g_file{};
std::array<char, 1 << 16> g_stack{}; // for the handler, since a crash may be an overflow of the thread's own stack

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
    ::raise(number); // SA_RESETHAND has restored the default action, which ends the process
}

/// From now on a crash (a bad access, an abort, an illegal instruction) writes signal and stack into `file` and says so
/// in one line on standard error; then the process ends by that signal as before. Everything is prepared here, because
/// a handler may neither allocate nor lock.
void reportCrashes(const std::string& file) {
    if (file.size() >= g_file.size()) return;
    std::memcpy(g_file.data(), file.c_str(), file.size() + 1);
    void* first = nullptr;
    ::backtrace(&first, 1); // loads libgcc now, because loading it allocates
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

// Panes run in parallel, and each uses the engine's own threads, so more workers would only compete.
constexpr int kWorkers = 2;

constexpr const char* kInstead = "use a subcommand (kvscope --help) or xvfb-run";

bool g_windowIsUp = false;

/// Qt ends the process where a display cannot be opened (by an abort) or is lost (by exit, which would destroy objects
/// that other threads use). Both cases print one sentence and end the process. Qt's other messages are dropped until
/// the application is created, because its warnings about displays do not help a user.
void heedQt(QtMsgType type, const QMessageLogContext& context, const QString& text) {
    const bool isLost = text.contains("connection broke");
    if (type != QtFatalMsg && !isLost) {
        if (g_windowIsUp) std::fprintf(stderr, "%s\n", qPrintable(qFormatLogMessage(type, context, text)));
        return;
    }
    const std::string display = qEnvironmentVariable("DISPLAY", "none").toStdString(),
                      platform = qEnvironmentVariable("QT_QPA_PLATFORM", "by default").toStdString();
    const std::string message = isLost ? "kvscope: the display is gone; what was shown is offered at the next start\n"
                                       : "kvscope: the window cannot be opened on the display '" + oneLine(display) +
                                             "' (platform " + oneLine(platform) + "); " + kInstead + "\n";
    static_cast<void>(!::write(STDERR_FILENO, message.data(), message.size()));
    ::_exit(2);
}

/// The bound of the runner's cache. The results of panes have one of their own (RecentResults), and every shown view
/// keeps its latest data.
std::size_t cacheBytes(double gibibytes) {
    const double machine =
        static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGESIZE));
    const double wanted = gibibytes > 0 ? gibibytes * 0x1p30 : std::clamp(machine / 8, 0x1p30, 4 * 0x1p30);
    return static_cast<std::size_t>(wanted);
}

} // namespace

int runWindow(int& argc, char** argv, std::string path, int threads, const std::string& engine, double memory) {
    QSurfaceFormat format;
    format.setVersion(3, 3);
    format.setProfile(QSurfaceFormat::CoreProfile);
    format.setSwapInterval(0);
    QSurfaceFormat::setDefaultFormat(format);
    qInstallMessageHandler(heedQt);
    QApplication application(argc, argv);
    if (const QString platform = QGuiApplication::platformName(); platform == "offscreen" || platform == "minimal") {
        std::fprintf(stderr, "kvscope: the platform '%s' shows no window; %s\n", qPrintable(platform), kInstead);
        return 2;
    }
    g_windowIsUp = true;
    endAtOnceOnSignals();
    QApplication::setApplicationName("KVScope");
    QApplication::setOrganizationName("KVScope");
    QApplication::setDesktopFileName("kvscope"); // resources/package/kvscope.desktop, where Wayland finds the icon
    QApplication::setStyle(makeChromeStyle());
    systemTheme().start();

    const QtTextService text;
    // The window opens at once on the CPU engine; another engine takes over when it is ready.
    const auto runner =
        std::make_shared<const LayerRunner>(std::shared_ptr<const Engine>(makeCpuEngine(threads)), cacheBytes(memory));
    WorkerPool workers(kWorkers);
    Workbench workbench(
        runner, [&workers](Scheduler::Task task) { workers.run(std::move(task)); },
        [](Scheduler::Task task) { QMetaObject::invokeMethod(qApp, std::move(task), Qt::QueuedConnection); });
    MainWindow window(workbench, text);
    const QString state = Recovery::stateFolder();
    Recovery recovery(workbench, window.notices(), state);
    reportCrashes(Recovery::stackFile(state).toStdString());
    window.engines().start({.name = engine, .threads = threads});
    window.show();
    window.offerTour();
    recovery.offer();
    if (path.empty()) path = findResource("sample_data/needle-1k.h5");
    if (!path.empty()) window.openPath(QString::fromStdString(path));
    const int code = QApplication::exec();
    live::leaveWorkers();
    return code;
}

} // namespace kvscope
