#pragma once

#include <string>

namespace kvscope {

/// What the NVIDIA driver of this machine says of itself and of the first GPU. Zeros: it does not say.
struct NvidiaDriver {
    bool found = false;
    int cudaVersion = 0;      ///< largest CUDA it runs: 1000 major + 10 minor
    int major = 0, minor = 0; ///< compute capability of the GPU
    std::string gpu;          ///< "NVIDIA H200"
};

/// Opens the driver's library, not the toolkit's: it is there exactly where a driver is.
NvidiaDriver readNvidiaDriver();
/// As above without touching a GPU, which takes a while: found and cudaVersion alone.
NvidiaDriver readNvidiaDriverVersion();

/// Why the second engine cannot run on CUDA with this driver and GPU, and what helps; empty sentence: it can.
struct DriverRefusal {
    std::string sentence, remedy;
};
DriverRefusal refusalOf(const NvidiaDriver& driver);

} // namespace kvscope
