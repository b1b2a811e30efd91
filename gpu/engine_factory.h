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

/// Runs small calls of the primitives that a budget move needs, so that a device loads its kernels and libraries now
/// and not during the first move.
void warmUp(const Engine& engine);

/// An engine that can be named, and whether it probably works on this machine. Asking loads the driver's library only.
struct EngineOffer {
    std::string name, title;
    std::string missing, remedy; ///< empty: nothing is missing
};
std::vector<EngineOffer> engineOffers();

/// What the NVIDIA driver reports about itself and the first GPU; 0 where it reports nothing.
struct NvidiaDriver {
    bool found = false;
    int cudaVersion = 0;      ///< largest CUDA it runs: 1000 major + 10 minor
    int major = 0, minor = 0; ///< compute capability of the GPU
    std::string gpu;          ///< "NVIDIA H200"
};

/// Loads the driver's own library (not the toolkit's), which exists exactly where a driver is installed.
NvidiaDriver readNvidiaDriver();
/// Lets a thread that waits for the first GPU sleep, instead of keeping a core busy. Nothing happens without a GPU.
void waitForGpuAsleep();
/// Only `found` and cudaVersion, without initialising a GPU, which takes a while.
NvidiaDriver readNvidiaDriverVersion();

/// Why the LibTorch engine cannot run on CUDA with this driver and GPU, and the remedy; an empty sentence: it can.
struct DriverRefusal {
    std::string sentence, remedy;
};
DriverRefusal refusalOf(const NvidiaDriver& driver);

} // namespace kvscope
