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

std::unique_ptr<Engine> makeSecondEngine(const EngineChoice& choice, const std::string& device) {
    const EngineModuleMake make = openModule(choice.name);
    EngineModuleDevice made = make({device, choice.threads, choice.arithmetic});
    return std::make_unique<ResidentEngine>(
        std::move(made.engine), std::shared_ptr<const Engine>(makeCpuEngine(choice.threads, {}, choice.arithmetic)),
        choice.memoryBytes > 0 ? choice.memoryBytes : made.memoryBytes);
}

std::string nameList() {
    std::string names;
    for (const EngineOffer& offer : engineOffers()) names += (names.empty() ? "" : ", ") + offer.name;
    return names;
}

} // namespace

std::unique_ptr<Engine> makeEngine(const EngineChoice& choice) {
    if (choice.name == "cpu") return makeCpuEngine(choice.threads, {}, choice.arithmetic);
    if (choice.name == "torch") return makeSecondEngine(choice, "cpu");
    if (choice.name != "cuda")
        throw Error({.sentence = "there is no engine '" + choice.name + "'",
                     .place = "engine",
                     .remedy = "Use one of: " + nameList()});
    if (const DriverRefusal refusal = refusalOf(readNvidiaDriver()); !refusal.sentence.empty())
        fail("cuda", refusal.sentence, refusal.remedy);
    return makeSecondEngine(choice, "cuda");
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
