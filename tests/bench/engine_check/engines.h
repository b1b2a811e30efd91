#pragma once

#include "core/engine/engine.h"
#include "gpu/engine_factory.h"

#include <functional>
#include <map>

namespace kvscope::check {

/// strict: what fails on a device is an error.
using EngineFactory = std::function<std::unique_ptr<Engine>(int threads, bool strict)>;

inline EngineFactory secondEngine(const char* name, Arithmetic arithmetic) {
    return [=](int threads, bool strict) { return makeEngine({name, threads, arithmetic, 0, strict}); };
}

/// Engines by the name of --engine; those that this machine lacks say so when they are made. A further engine adds a
/// line.
inline const std::map<std::string, EngineFactory>& engineFactories() {
    static const std::map<std::string, EngineFactory> factories = {
        {"cpu", [](int threads, bool) { return makeCpuEngine(threads); }},
        {"cpu-fast", [](int threads, bool) { return makeCpuEngine(threads, {}, Arithmetic::Fast); }},
        {"cpu-v2", [](int threads, bool) { return makeCpuEngine(threads, "v2"); }},
        {"cpu-v3", [](int threads, bool) { return makeCpuEngine(threads, "v3"); }},
        {"cpu-v4", [](int threads, bool) { return makeCpuEngine(threads, "v4"); }},
        {"torch", secondEngine("torch", Arithmetic::Exact)},
        {"torch-fast", secondEngine("torch", Arithmetic::Fast)},
        {"cuda", secondEngine("cuda", Arithmetic::Exact)},
        {"cuda-fast", secondEngine("cuda", Arithmetic::Fast)},
    };
    return factories;
}

} // namespace kvscope::check
