// The two functions that the program looks up in this library at run time: a fingerprint of the build, and the factory
// of the engine.
#include "gpu/engine_module.h"
#include "gpu/torch/torch_engine.h"

using namespace kvscope;

extern "C" {

[[gnu::visibility("default")]] const char* kvscopeEngineModuleStamp() { return KVSCOPE_ENGINE_STAMP; }

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpragmas"
#pragma GCC diagnostic ignored "-Wreturn-type-c-linkage" // looked up by name, called from C++
[[gnu::visibility("default")]] EngineModuleDevice kvscopeEngineModuleMake(const EngineModuleRequest& request) {
    auto engine = std::make_shared<const gpu::TorchEngine>(request);
    const std::size_t bytes = engine->residentBytes();
    return {std::move(engine), bytes};
}
#pragma GCC diagnostic pop
}
