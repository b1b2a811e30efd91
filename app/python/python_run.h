#pragma once

#include "core/run/run.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace kvscope {

/// How a run is to be done, as evict() and measure() take it.
struct RunWords {
    std::string policy; ///< with its budget: "keydiff:kvpress@0.25"
    std::string cut = "none";
    std::uint64_t seed = 0;
    std::string uniforms, sketch; ///< FILE.h5:/path, replayed
};

std::shared_ptr<const LayerRunner> makeRunner(int threads, std::size_t cacheBytes);

/// Does `work` with the interpreter's lock released. Ctrl+C stops it and raises KeyboardInterrupt. Throws Error.
void withoutLock(const std::function<void(const Checkpoint&)>& work);

/// Runs one layer. Throws Error: the command line's sentences.
std::shared_ptr<const RunResult> runLayer(const LayerRunner& runner, std::shared_ptr<const CaptureReader> capture,
                                          LayerIndex layer, const RunWords& words, bool measure);

} // namespace kvscope
