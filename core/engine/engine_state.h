#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace kvscope {

/// State of an engine for status lines and reports.
struct EngineState {
    std::string device;                 ///< "NVIDIA H200 (139 GiB)", "LibTorch on the CPU, 2 threads"
    std::vector<std::string> delegated; ///< primitives that it always runs on the CPU engine, named as in engine.h
    std::string notice;                 ///< one line about its last fallback; empty: none
    std::size_t residentBytes = 0;      ///< of tensors in the device's memory
    std::size_t memoryBytes = 0;        ///< their limit; 0: none
    int threads = 0;                    ///< threads of its work on the CPU; 0: all cores
};

} // namespace kvscope
