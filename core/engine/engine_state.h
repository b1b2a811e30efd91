#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

namespace kvscope {

/// Number of calls by primitive.
using CallCounts = std::map<std::string, std::int64_t>;
/// "anchor (1 call), rowNorms (3 calls)"
std::string textOf(const CallCounts& counts);

/// State of an engine for status lines and reports.
struct EngineState {
    std::string device;            ///< "NVIDIA H200 (139 GiB)", "LibTorch on the CPU, 2 threads"
    CallCounts delegated;          ///< calls without device code: the CPU engine ran them
    CallCounts fallbacks;          ///< calls that failed on the device: the CPU engine repeated them
    std::string notice;            ///< one line about the last fallback; empty: none
    std::string failure;           ///< primitive and shapes of that call, and the device's error message
    std::size_t residentBytes = 0; ///< of tensors in the device's memory
    std::size_t memoryBytes = 0;   ///< their limit; 0: none
    int threads = 0;               ///< threads of its work on the CPU; 0: all cores
};

} // namespace kvscope
