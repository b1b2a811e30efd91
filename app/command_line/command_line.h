#pragma once

#include <optional>
#include <string>

namespace kvscope {

/// What the window is asked for when no subcommand is given.
struct WindowRequest {
    std::string file; ///< capture, session or list to open; empty: the sample
    int threads = 0;
    std::string engine; ///< empty: not given
};

/// Runs a subcommand, --help or --version and returns the exit code: 0 done, 2 what a user or a file caused (one clear
/// sentence on stderr, nothing half-written), 130 stopped with Ctrl+C. Nothing when the window was asked for: then
/// `window` says with what.
std::optional<int> runCommandLine(int argc, char** argv, WindowRequest& window);

} // namespace kvscope
