#pragma once

#include <optional>
#include <string>

namespace kvscope {

/// The window to open when no subcommand is given.
struct WindowRequest {
    std::string file; ///< capture, session or list to open; empty: the sample
    int threads = 0;
    std::string engine; ///< empty: not given
    double memory = 0;  ///< GiB for tensors and results that are kept for later; 0: from the machine's memory
    int refused = 0;    ///< exit code for a file that cannot be opened; used where no display could show the error
};

/// Runs a subcommand, --help or --version and returns the exit code: 0 done, 2 an error that a user or a file caused
/// (one sentence on stderr, nothing half-written), 130 or 143 stopped by Ctrl+C or SIGTERM. Empty when a window is
/// requested, which `window` then describes. A window also opens for a broken file, and says what is wrong with it.
std::optional<int> runCommandLine(int argc, char** argv, WindowRequest& window);

} // namespace kvscope
