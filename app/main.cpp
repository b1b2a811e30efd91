// The composition root: a subcommand runs without a window, anything else opens one.
#include "app/command_line/command_line.h"
#include "app/window/run_window.h"
#include "core/base/termination.h"

#include <QHashSeed>

#include <cstdio>
#include <cstdlib>

int main(int argc, char** argv) {
    kvscope::endOnSignals();
    QHashSeed::setDeterministicGlobalSeed(); // a PDF lists its fonts in the order of a hash: equal figures, equal
                                             // bytes
    kvscope::WindowRequest request;
    if (const auto code = kvscope::runCommandLine(argc, argv, request)) return *code;
    const char* platform = std::getenv("QT_QPA_PLATFORM");
    if (!std::getenv("DISPLAY") && !std::getenv("WAYLAND_DISPLAY") && !platform) {
        if (request.refused != 0) return request.refused;
        std::fputs("kvscope: there is no display for the window; use a subcommand (kvscope --help) or xvfb-run\n",
                   stderr);
        return 2;
    }
    return kvscope::runWindow(argc, argv, request.file, request.threads, request.engine, request.memory);
}
