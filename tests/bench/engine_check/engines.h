#pragma once

#include "core/engine/engine.h"

#include <functional>
#include <map>

namespace kvscope::check {

using EngineFactory = std::function<std::unique_ptr<Engine>(int threads)>;

/// Every engine of this build by the name of --engine. A further engine adds one line.
inline const std::map<std::string, EngineFactory>& engineFactories() {
    static const std::map<std::string, EngineFactory> factories = {
        {"cpu", [](int threads) { return makeCpuEngine(threads); }},
        {"cpu-fast", [](int threads) { return makeCpuEngine(threads, {}, Arithmetic::Fast); }},
        {"cpu-v2", [](int threads) { return makeCpuEngine(threads, "v2"); }},
        {"cpu-v3", [](int threads) { return makeCpuEngine(threads, "v3"); }},
        {"cpu-v4", [](int threads) { return makeCpuEngine(threads, "v4"); }},
    };
    return factories;
}

} // namespace kvscope::check
