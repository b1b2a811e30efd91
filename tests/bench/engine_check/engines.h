#pragma once

#include "core/engine/engine.h"
#include "gpu/engine_factory.h"

#include <functional>
#include <map>

namespace kvscope::check {

using EngineFactory = std::function<std::unique_ptr<Engine>(int threads)>;

/// Engines by the name of --engine; those that this machine lacks say so when they are made. A further engine adds a
/// line.
inline const std::map<std::string, EngineFactory>& engineFactories() {
    static const std::map<std::string, EngineFactory> factories = {
        {"cpu", [](int threads) { return makeCpuEngine(threads); }},
        {"cpu-fast", [](int threads) { return makeCpuEngine(threads, {}, Arithmetic::Fast); }},
        {"cpu-v2", [](int threads) { return makeCpuEngine(threads, "v2"); }},
        {"cpu-v3", [](int threads) { return makeCpuEngine(threads, "v3"); }},
        {"cpu-v4", [](int threads) { return makeCpuEngine(threads, "v4"); }},
        {"torch",
         [](int threads) {
             return makeEngine({"torch", threads});
         }},
        {"torch-fast",
         [](int threads) {
             return makeEngine({"torch", threads, Arithmetic::Fast});
         }},
        {"cuda",
         [](int threads) {
             return makeEngine({"cuda", threads});
         }},
        {"cuda-fast",
         [](int threads) {
             return makeEngine({"cuda", threads, Arithmetic::Fast});
         }},
    };
    return factories;
}

} // namespace kvscope::check
