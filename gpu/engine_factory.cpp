// Engines by name. The LibTorch engine is a shared module beside the program, loaded on first use: the program starts
// without LibTorch and reports what is missing when the module cannot be found.
#include "gpu/engine_factory.h"

#include "core/base/error.h"
#include "gpu/engine_module.h"
#include "gpu/resident_engine.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

namespace kvscope {

namespace {

constexpr const char* kModuleFile = "libkvscope_torch.so";
constexpr const char* kFetch = "Run resources/dev/libtorch.sh fetch and build again, or use --engine cpu";

/// The module beside the program, as built or as installed; KVSCOPE_ENGINE_MODULE names another. Empty: there is none.
std::string modulePath() {
    if (const char* given = std::getenv("KVSCOPE_ENGINE_MODULE")) return given;
    std::error_code ignored;
    const std::filesystem::path folder = std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
    for (const char* place : {".", "../bin", "../lib/kvscope"})
        if (const auto file = folder / place / kModuleFile; std::filesystem::exists(file, ignored))
            return file.lexically_normal().string();
    return {};
}

[[noreturn]] void fail(const std::string& engine, const std::string& sentence, const std::string& remedy,
                       const std::string& path = {}) {
    throw Error({sentence, "engine " + engine, remedy, path});
}

EngineModuleMake openModule(const std::string& engine) {
    const std::string path = modulePath();
    if (path.empty()) fail(engine, "this build has no LibTorch engine", kFetch);
    // The module is never closed, because LibTorch keeps threads and static tables until the process ends.
    void* module = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!module) fail(engine, std::string("the LibTorch engine cannot be loaded (") + dlerror() + ")", kFetch, path);
    const auto stamp = reinterpret_cast<EngineModuleStamp>(dlsym(module, kEngineModuleStamp));
    const auto make = reinterpret_cast<EngineModuleMake>(dlsym(module, kEngineModuleMake));
    if (!stamp || !make || std::string(stamp()) != KVSCOPE_ENGINE_STAMP)
        fail(engine, "the LibTorch engine belongs to another build of KVScope", "Build all of it again", path);
    return make;
}

std::unique_ptr<Engine> makeSecondEngine(const EngineChoice& choice, EngineModuleRequest request) {
    const EngineModuleMake make = openModule(choice.name);
    request.threads = choice.threads;
    request.arithmetic = choice.arithmetic;
    request.hasDriver = refusalOf(readNvidiaDriverVersion()).sentence.empty();
    EngineModuleDevice made = make(request);
    return std::make_unique<ResidentEngine>(
        std::move(made.engine), std::shared_ptr<const Engine>(makeCpuEngine(choice.threads, {}, choice.arithmetic)),
        choice.memoryBytes > 0 ? choice.memoryBytes : made.memoryBytes, choice.strict);
}

std::unique_ptr<Engine> makeCudaEngine(const EngineChoice& choice) {
    const NvidiaDriver driver = readNvidiaDriver();
    if (const DriverRefusal refusal = refusalOf(driver); !refusal.sentence.empty())
        fail("cuda", refusal.sentence, refusal.remedy);
    waitForGpuAsleep();
    auto engine = makeSecondEngine(choice, {.device = "cuda", .gpu = driver.gpu});
    warmUp(*engine);
    return engine;
}

std::string nameList() {
    std::string names;
    for (const EngineOffer& offer : engineOffers()) names += (names.empty() ? "" : ", ") + offer.name;
    return names;
}

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

std::unique_ptr<Engine> makeEngine(const EngineChoice& choice) {
    if (choice.name == "cpu") return makeCpuEngine(choice.threads, {}, choice.arithmetic);
    if (choice.name == "torch") return makeSecondEngine(choice, {.device = "cpu"});
    if (choice.name == "cuda") return makeCudaEngine(choice);
    throw Error({"there is no engine '" + choice.name + "'", "engine", "Use one of: " + nameList()});
}

void warmUp(const Engine& engine) {
    constexpr std::int64_t heads = 2, n = 256, d = 128;
    HostTensor some{Shape{heads, n, d}, {}, StoredType::Bfloat16};
    for (std::int64_t i = 0; i < heads * n * d; ++i) some.data.push_back(static_cast<float>(i * 37 % 101) / 64 - 0.75F);
    const Tensor rows = engine.upload(some);
    const AttentionRule rule{.scaling = 0.1, .gqaGroupOf = {0, 1}};
    engine.similarity(rows, engine.anchor(rows, AnchorKind::NormalisedMean, {}), SimilarityMetric::Cosine, {});
    engine.rowNorms(rows, {});
    engine.attentionColumnSums({engine.rows(rows, n - 32, n), rows, n - 32, {}, rule}, {});
    engine.attentionChunkSums({rows, rows, rule}, {});
    for (const LeverageRoute route : {LeverageRoute::Cholesky, LeverageRoute::Svd})
        engine.leverage({rows, {}, route}, {});
    engine.weightedAttention({engine.rows(rows, n - 32, n), rows, rows, n - 32, n - 32, rule, {}}, {});
}

std::vector<EngineOffer> engineOffers() {
    std::vector<EngineOffer> offers = {
        {"cpu", "CPU", {}, {}}, {"torch", "LibTorch on the CPU", {}, {}}, {"cuda", "NVIDIA GPU", {}, {}}};
    if (modulePath().empty())
        for (std::size_t i : {1, 2}) offers[i].missing = "not part of this build", offers[i].remedy = kFetch;
    else if (const DriverRefusal refusal = refusalOf(readNvidiaDriverVersion()); !refusal.sentence.empty())
        offers[2].missing = refusal.sentence, offers[2].remedy = refusal.remedy;
    return offers;
}

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
