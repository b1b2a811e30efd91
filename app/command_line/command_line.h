#pragma once

#include <optional>
#include <string>

namespace kvscope {

/// Runs a subcommand, --help or --version and returns the exit code: 0 done, 2 what a user or a file caused (one clear
/// sentence on stderr, nothing half-written), 130 stopped with Ctrl+C. Nothing when the window was asked for: then
/// `windowFile` is the capture, session or list to open, or empty.
struct WindowRequest {
    const char* file = nullptr;
    int threads = 0;
    std::string engine; ///< empty: not given
};
std::optional<int> runCommandLine(int argc, char** argv, WindowRequest& window);

} // namespace kvscope
