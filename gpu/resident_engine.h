#pragma once

#include "gpu/residency.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <string>

namespace kvscope {

/// The second engine as everybody else sees it: primitives run on a device engine, tensors are resident there up to a
/// memory budget, and no failure of the device stops the program. Out of memory: everything resident is evicted,
/// smaller batches, and at last the CPU engine for that call. Device lost: the CPU engine from then on. A primitive
/// without device code runs on the CPU engine, with its time in the bounds of a CPU. state().notice says which failure
/// happened last, state().delegated which primitives have no device code. Thread-safe.
class ResidentEngine final : public ForwardedPrimitives<ResidentEngine> {
public:
    /// memoryBytes 0: no bound on what is resident.
    ResidentEngine(std::shared_ptr<const DeviceEngine> device, std::shared_ptr<const Engine> cpu,
                   std::size_t memoryBytes);

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

    /// Calls `call` with the device engine and what brings tensors there; where that fails, with the CPU engine.
    template <class Call> auto run(const char* primitive, const Call& call) const {
        while (!m_lost) {
            try {
                return call(*m_device, [this](const Tensor& tensor) { return m_residency.onDevice(tensor); });
            } catch (const std::exception& failure) {
                if (!tryAgain(primitive, failure))
                    break;
            }
        }
        return call(*m_cpu, [this](const Tensor& tensor) { return m_residency.onCpu(tensor); });
    }

private:
    bool tryAgain(const std::string& primitive, const std::exception& failure) const;
    bool makeRoom() const;
    void notice(const std::string& text) const;

    std::shared_ptr<const DeviceEngine> m_device;
    std::shared_ptr<const Engine> m_cpu;
    std::size_t m_memoryBytes;
    mutable Residency m_residency;
    mutable std::atomic<bool> m_lost{false};
    mutable std::mutex m_noticeMutex;
    mutable std::string m_notice;
    mutable std::set<std::string> m_delegated;
};

} // namespace kvscope
