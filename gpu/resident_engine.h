#pragma once

#include "gpu/residency.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <string>

namespace kvscope {

/// A device engine made safe: primitives run on the device, tensors are resident there up to a memory budget, and no
/// failure of the device stops the program. Out of memory: evicts all tensors, then shrinks batches, at last runs the
/// call on the CPU engine. Device lost: all further calls run on the CPU engine. A primitive without device code always
/// runs there. state().notice names the last failure, state().delegated the primitives without device code.
/// Thread-safe.
class ResidentEngine final : public ForwardedPrimitives<ResidentEngine> {
public:
    /// memoryBytes 0: no bound on the resident tensors.
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

    /// Runs `call` on the device engine with tensors uploaded; after a failure on the CPU engine.
    template <class Call> auto run(const char* primitive, const Call& call) const {
        while (!m_lost) {
            try {
                return call(*m_device, [this](const Tensor& tensor) { return m_residency.onDevice(tensor); });
            } catch (const std::exception& failure) {
                if (!tryAgain(primitive, failure)) break;
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
