// Tensors without an engine: numbers go in and come out as they were.
#include "tests/support/host_engine.h"

#include "core/base/error.h"
#include "core/engine/forwarding_engine.h"

namespace kvscope {

namespace {

struct HostStorage : TensorStorage {
    HostTensor numbers;
};

class HostEngine final : public ForwardingEngine {
public:
    HostEngine() : ForwardingEngine(*this) {}

    std::string name() const override { return "host"; }
    std::string arithmetic() const override { return "none"; }
    EngineState state() const override { return {}; }
    Tensor upload(HostTensor tensor) const override {
        auto storage = std::make_shared<HostStorage>();
        storage->numbers = std::move(tensor);
        return {storage->numbers.shape, storage};
    }
    HostTensor download(const Tensor& tensor) const override {
        return static_cast<const HostStorage&>(*tensor.storage()).numbers;
    }

private:
    const Engine& to(const char* primitive) const override {
        throw Error({std::string(primitive) + " has no kernel, and this build has no CPU engine",
                     "engine",
                     "install libeigen3-dev, libspectra-dev, libtbb-dev and libfmt-dev, and build again",
                     {}});
    }
};

} // namespace

std::unique_ptr<Engine> makeHostEngine() { return std::make_unique<HostEngine>(); }

} // namespace kvscope
