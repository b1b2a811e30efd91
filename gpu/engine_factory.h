#pragma once

#include "core/engine/engine.h"

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace kvscope {

/// Which engine computes, as --engine and the window's chooser name it.
struct EngineChoice {
    std::string name = "cpu"; ///< one of engineOffers()
    int threads = 0;          ///< on the CPU; 0: all cores
    Arithmetic arithmetic = Arithmetic::Exact;
    std::size_t memoryBytes = 0; ///< of the device, for tensors that stay there; 0: the engine's own choice
};

/// Throws Error that says what is missing and what to do about it.
std::unique_ptr<Engine> makeEngine(const EngineChoice& choice);

/// An engine that can be named, and whether it is likely to work here. Loads nothing.
struct EngineOffer {
    std::string name, title;
    std::string missing, remedy; ///< empty: nothing is missing
};
std::vector<EngineOffer> engineOffers();

} // namespace kvscope
