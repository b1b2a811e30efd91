#pragma once

#include <string>

namespace kvscope {

struct WindowOptions {
    std::string path;   ///< capture, session or recorded list; empty: the sample capture
    int threads = 0;    ///< of the engine; 0: all cores
    std::string engine; ///< as --engine; empty: the engine chosen last time
};

/// Opens the window and runs it until it is closed. Returns the process's exit code.
int runWindow(int& argc, char** argv, const WindowOptions& options);

} // namespace kvscope
