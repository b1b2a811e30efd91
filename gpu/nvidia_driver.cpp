// Of an old driver or GPU, LibTorch reports only that a kernel image or a symbol is missing. This file asks the driver
// itself, through the functions that its library exports.
#include "gpu/nvidia_driver.h"

#include <dlfcn.h>

namespace kvscope {

namespace {

// LibTorch and the kernels are built with CUDA 13.0, for these GPUs and newer ones.
constexpr int kNeededCuda = 13000, kNeededMajor = 8;
constexpr const char* kNeeds =
    "the CUDA engine needs driver 580 or newer (CUDA 13.0) and a GPU of compute capability 8.0 or "
    "newer (Ampere, 2020)";
constexpr int kMajorAttribute = 75, kMinorAttribute = 76; // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, _MINOR
constexpr unsigned kBlockingSync = 4;                     // CU_CTX_SCHED_BLOCKING_SYNC

/// Never closed: once initialised, the driver keeps threads.
class DriverLibrary {
public:
    DriverLibrary() : m_library(dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL)) {}

    bool found() const { return m_library != nullptr; }
    /// True when the function exists and returned CUDA_SUCCESS.
    template <class... Arguments> bool call(const char* name, Arguments... arguments) const {
        using Function = int (*)(Arguments...);
        const auto function = m_library ? reinterpret_cast<Function>(dlsym(m_library, name)) : nullptr;
        return function && function(arguments...) == 0;
    }

private:
    void* m_library;
};

NvidiaDriver versionOf(const DriverLibrary& library) {
    NvidiaDriver driver;
    driver.found = library.found();
    if (!library.call("cuDriverGetVersion", &driver.cudaVersion)) driver.cudaVersion = 0;
    return driver;
}

std::string dotted(int major, int minor) { return std::to_string(major) + "." + std::to_string(minor); }

} // namespace

NvidiaDriver readNvidiaDriverVersion() { return versionOf(DriverLibrary()); }

void waitForGpuAsleep() {
    const DriverLibrary library;
    int device = 0;
    if (library.call("cuInit", 0U) && library.call("cuDeviceGet", &device, 0))
        library.call("cuDevicePrimaryCtxSetFlags_v2", device, kBlockingSync);
}

NvidiaDriver readNvidiaDriver() {
    const DriverLibrary library;
    NvidiaDriver driver = versionOf(library);
    int device = 0;
    char name[128] = "";
    if (!library.call("cuInit", 0U) || !library.call("cuDeviceGet", &device, 0)) return driver;
    if (library.call("cuDeviceGetName", static_cast<char*>(name), static_cast<int>(sizeof name), device))
        driver.gpu = name;
    if (!library.call("cuDeviceGetAttribute", &driver.major, kMajorAttribute, device) ||
        !library.call("cuDeviceGetAttribute", &driver.minor, kMinorAttribute, device))
        driver.major = driver.minor = 0;
    return driver;
}

DriverRefusal refusalOf(const NvidiaDriver& driver) {
    if (!driver.found)
        return {"this machine has no NVIDIA driver", "Install the driver of the GPU, or use --engine cpu"};
    if (driver.cudaVersion > 0 && driver.cudaVersion < kNeededCuda)
        return {"the NVIDIA driver is too old: it runs CUDA " +
                    dotted(driver.cudaVersion / 1000, driver.cudaVersion % 1000 / 10) + "; " + kNeeds,
                "Install driver 580 or newer, or use --engine cpu"};
    if (driver.major > 0 && driver.major < kNeededMajor)
        return {(driver.gpu.empty() ? std::string("the GPU") : driver.gpu) + " is too old: its compute capability is " +
                    dotted(driver.major, driver.minor) + "; " + kNeeds,
                "Use --engine cpu, or --engine torch on the CPU"};
    return {};
}

} // namespace kvscope
