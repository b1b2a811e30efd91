#pragma once

#include <string>

namespace kvscope {

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
