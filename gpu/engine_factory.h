#pragma once

#include "core/engine/engine.h"

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace kvscope {

/// Which engine computes, as named by --engine and by the window's engine chooser.
struct EngineChoice {
    std::string name = "cpu"; ///< one of engineOffers()
    int threads = 0;          ///< on the CPU; 0: all cores
    Arithmetic arithmetic = Arithmetic::Exact;
    std::size_t memoryBytes = 0; ///< for resident tensors on the device; 0: the engine decides
    bool strict = false;         ///< what fails on a device is an error instead of a call on the CPU (checks)
};

/// Throws Error that says what is missing and what to do about it. Takes a second and more for "cuda", which opens the
/// device and runs every library on it once.
std::unique_ptr<Engine> makeEngine(const EngineChoice& choice);

/// Runs small calls of what a budget move needs, so that a device loads its kernels and libraries now and not in the
/// first move.
void warmUp(const Engine& engine);

/// An engine that can be named, and whether it probably works on this machine. Asking loads no library.
struct EngineOffer {
    std::string name, title;
    std::string missing, remedy; ///< empty: nothing is missing
};
std::vector<EngineOffer> engineOffers();

} // namespace kvscope
