// Engines by name. The LibTorch engine is a shared module beside the program, loaded on first use: the program starts
// without LibTorch and reports what is missing when the module cannot be found.
#include "gpu/engine_factory.h"

#include "core/base/error.h"
#include "gpu/engine_module.h"
#include "gpu/nvidia_driver.h"
#include "gpu/resident_engine.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

namespace kvscope {

namespace {

constexpr const char* kModuleFile = "libkvscope_torch.so";
constexpr const char* kFetch = "Run resources/dev/libtorch.sh fetch and build again, or use --engine cpu";

/// Beside the program, as built or as installed; KVSCOPE_ENGINE_MODULE names another one. Empty: there is none.
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
    throw Error({.sentence = sentence, .place = "engine " + engine, .remedy = remedy, .path = path});
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

} // namespace

std::unique_ptr<Engine> makeEngine(const EngineChoice& choice) {
    if (choice.name == "cpu") return makeCpuEngine(choice.threads, {}, choice.arithmetic);
    if (choice.name == "torch") return makeSecondEngine(choice, {.device = "cpu"});
    if (choice.name == "cuda") return makeCudaEngine(choice);
    throw Error({.sentence = "there is no engine '" + choice.name + "'",
                 .place = "engine",
                 .remedy = "Use one of: " + nameList()});
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

} // namespace kvscope
