#pragma once

#include "gpu/device_engine.h"

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>

namespace kvscope {

/// Decides which tensors are resident on the device: a tensor is uploaded when a primitive first needs it and evicted
/// (least recently used first) when the memory budget is full. The host keeps the numbers, so a lost device loses
/// nothing. Rows of a tensor share its numbers. Tensors may outlive the residency and both engines. Thread-safe;
/// tensors may be uploaded concurrently, each once.
class Residency {
public:
    /// memoryBytes 0: no bound. The engines must outlive every call, but not the tensors.
    Residency(std::shared_ptr<const DeviceEngine> device, std::shared_ptr<const Engine> cpu, std::size_t memoryBytes);
    ~Residency();

    Tensor upload(HostTensor numbers);
    static Tensor rows(const Tensor& tensor, std::int64_t begin, std::int64_t end);
    static Tensor gatherRows(const Tensor& tensor, const RowPositions& rows);

    /// The tensor as a tensor of the device engine. Throws what uploading throws.
    Tensor onDevice(const Tensor& tensor);
    /// The tensor as a tensor of the CPU engine.
    Tensor onCpu(const Tensor& tensor) const;

    /// Evicts every tensor from the device.
    void evictAll();
    std::size_t residentBytes() const;

private:
    struct Block;
    struct Storage;
    struct State;
    static const Storage& storageOf(const Tensor& tensor);
    Tensor wholeOnDevice(Block& block);
    void makeRoom(std::size_t bytes);

    std::shared_ptr<const DeviceEngine> m_device;
    std::shared_ptr<const Engine> m_cpu;
    std::size_t m_memoryBytes;
    std::shared_ptr<State> m_state;
};

/// A device engine made safe: primitives run on the device, tensors are resident there up to a memory budget, and no
/// failure of the device stops the program. Out of memory: evicts all tensors, then shrinks batches, finally runs the
/// call on the CPU engine. Device lost: all further calls run on the CPU engine. A strict engine throws Error instead
/// of running a failed call on the CPU. A primitive without device code always runs on the CPU, strict or not. state()
/// counts both kinds of calls and has the last failure. What is not the device's fault is thrown as Error and never
/// repeated. Thread-safe.
class ResidentEngine final : public ForwardedPrimitives<ResidentEngine> {
public:
    /// memoryBytes 0: no bound on the resident tensors.
    ResidentEngine(std::shared_ptr<const DeviceEngine> device, std::shared_ptr<const Engine> cpu,
                   std::size_t memoryBytes, bool strict = false);

    std::string name() const override { return m_device->name(); }
    std::string arithmetic() const override { return m_device->arithmetic(); }
    EngineState state() const override;

    Tensor upload(HostTensor tensor) const override { return m_residency.upload(std::move(tensor)); }
    HostTensor download(const Tensor& tensor) const override { return m_cpu->download(m_residency.onCpu(tensor)); }
    Tensor rows(const Tensor& tensor, std::int64_t begin, std::int64_t end) const override {
        return Residency::rows(tensor, begin, end);
    }
    Tensor gatherRows(const Tensor& tensor, const RowPositions& rows) const override {
        return Residency::gatherRows(tensor, rows);
    }

    /// Runs `call` on the device engine with tensors uploaded; after a failure on the CPU engine.
    template <class Call> auto run(const char* primitive, const Call& call) const {
        while (!m_lost) {
            Attempt attempt{primitive, {}};
            try {
                m_device->enterThread();
                return call(*m_device, [&](const Tensor& tensor) {
                    attempt.add(tensor);
                    return m_residency.onDevice(tensor);
                });
            } catch (const std::exception& failure) {
                if (!tryAgain(attempt, failure)) return onCpu(call);
            }
        }
        fallBack({primitive, {}}, "The GPU stopped answering: going on with the CPU", {});
        return onCpu(call);
    }

private:
    /// A primitive and the shapes of its tensors, for messages.
    struct Attempt {
        std::string primitive, shapes;

        void add(const Tensor& tensor);
        std::string text() const { return primitive + (shapes.empty() ? "" : " of " + shapes); }
    };

    template <class Call> auto onCpu(const Call& call) const {
        return call(*m_cpu, [this](const Tensor& tensor) { return m_residency.onCpu(tensor); });
    }
    bool tryAgain(const Attempt& attempt, const std::exception& failure) const;
    bool makeRoom() const;
    void fallBack(const Attempt& attempt, const std::string& notice, const std::string& words) const;

    std::shared_ptr<const DeviceEngine> m_device;
    std::shared_ptr<const Engine> m_cpu;
    std::size_t m_memoryBytes;
    bool m_strict;
    mutable Residency m_residency;
    mutable std::atomic<bool> m_lost{false};
    mutable std::mutex m_mutex;
    mutable EngineState m_state; ///< only counts, notice and failure; guarded by the mutex
};

} // namespace kvscope
