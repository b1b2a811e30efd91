#pragma once

#include "core/engine/forwarding_engine.h"
#include "gpu/resident_engine.h"

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>

namespace kvscope {

struct DeviceGone : std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct CallRefused : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// Shapes that a library refuses: a mistake of the caller.
struct WrongShape : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// The CPU engine as a device with memory of its own and failures on demand.
class FakeDevice final : public BasicForwardingEngine<DeviceEngine> {
public:
    FakeDevice() : FakeDevice(makeCpuEngine(1)) {}

    mutable std::map<std::string, int> calls;
    mutable int shrinksLeft = 0;
    mutable std::map<std::string, int> outOfMemory; ///< how many of the next calls fail
    std::string refused;                            ///< the call that never succeeds
    std::string misused;                            ///< the call whose tensors do not fit
    mutable bool gone = false;
    mutable std::string goneFrom; ///< the call during which the device is lost
    std::string missing;          ///< the primitive that the device has no code for
    std::function<void()> duringUpload;

    Tensor upload(HostTensor numbers) const override {
        const Engine& engine = to("upload");
        if (duringUpload) duringUpload();
        return engine.upload(std::move(numbers));
    }
    int count(const char* call) const {
        const std::lock_guard lock(m_mutex);
        return calls[call];
    }
    DeviceFailure classify(const std::exception& failure) const override {
        if (dynamic_cast<const std::bad_alloc*>(&failure)) return DeviceFailure::OutOfMemory;
        if (dynamic_cast<const CallRefused*>(&failure)) return DeviceFailure::Refused;
        return dynamic_cast<const DeviceGone*>(&failure) ? DeviceFailure::Lost : DeviceFailure::Ours;
    }
    bool shrink() const override { return shrinksLeft-- > 0; }
    void enterThread() const override {
        const std::lock_guard lock(m_mutex);
        m_entered.insert(std::this_thread::get_id());
    }

private:
    explicit FakeDevice(std::unique_ptr<Engine> engine) : BasicForwardingEngine(*engine), m_engine(std::move(engine)) {}

    const Engine& to(const char* call) const override {
        const std::lock_guard lock(m_mutex);
        ++calls[call];
        if (!m_entered.contains(std::this_thread::get_id())) throw std::logic_error("a thread that has not entered");
        gone = gone || goneFrom == call;
        if (gone) throw DeviceGone("CUDA error: unspecified launch failure");
        if (missing == call) throw NoDeviceCode();
        if (refused == call) throw CallRefused("cusolver error: CUSOLVER_STATUS_INTERNAL_ERROR\nException raised from");
        if (misused == call) throw WrongShape("mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)");
        if (outOfMemory[call]-- > 0) throw std::bad_alloc();
        return *m_engine;
    }

    std::unique_ptr<Engine> m_engine;
    mutable std::mutex m_mutex;
    mutable std::set<std::thread::id> m_entered; ///< threads that may call
};

struct Fixture {
    explicit Fixture(std::size_t memoryBytes = 0, bool strict = false)
        : engine(std::make_shared<ResidentEngine>(device, std::shared_ptr<const Engine>(makeCpuEngine(1)), memoryBytes,
                                                  strict)) {}
    std::shared_ptr<FakeDevice> device = std::make_shared<FakeDevice>();
    std::shared_ptr<ResidentEngine> engine;
};

} // namespace kvscope
