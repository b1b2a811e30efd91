#pragma once

#include <string>

namespace kvscope {

/// Opens the window and runs it until it is closed. Returns the process's exit code. `path`: capture, session or
/// recorded list; empty: the sample capture. `threads` of the engine; 0: all cores. `engine`: as --engine; empty: the
/// engine chosen last time. `memory`: as --memory; 0: by default.
int runWindow(int& argc, char** argv, std::string path, int threads, const std::string& engine, double memory);

} // namespace kvscope
