// Handling of device failures, for all primitives in one place.
#include "gpu/resident_engine.h"

#include <utility>

namespace kvscope {

ResidentEngine::ResidentEngine(std::shared_ptr<const DeviceEngine> device, std::shared_ptr<const Engine> cpu,
                               std::size_t memoryBytes)
    : m_device(std::move(device)), m_cpu(std::move(cpu)), m_memoryBytes(memoryBytes),
      m_residency(m_device, m_cpu, memoryBytes) {}

/// Call inside a handler. Rethrows what is not the device's fault. False: run this call on the CPU engine.
bool ResidentEngine::tryAgain(const std::string& primitive, const std::exception& failure) const {
    if (dynamic_cast<const NoDeviceCode*>(&failure)) {
        const std::lock_guard lock(m_noticeMutex);
        m_delegated.insert(primitive);
        return false;
    }
    switch (m_device->classify(failure)) {
    case DeviceFailure::Ours: throw;
    case DeviceFailure::OutOfMemory:
        if (makeRoom()) return true;
        notice("GPU memory is full: " + primitive + " ran on the CPU");
        return false;
    case DeviceFailure::Refused: notice("The GPU could not run " + primitive + ": it ran on the CPU"); return false;
    case DeviceFailure::Lost:
        m_lost = true;
        m_residency.evictAll();
        notice("The GPU stopped answering: going on with the CPU");
    }
    return false;
}

/// Evicts all tensors and asks for smaller batches. False when that does not help.
bool ResidentEngine::makeRoom() const {
    m_residency.evictAll();
    try {
        if (!m_device->shrink()) return false;
    } catch (const std::exception&) { // a lost device fails again in the next call
        return false;
    }
    notice("GPU memory is full: smaller batches");
    return true;
}

void ResidentEngine::notice(const std::string& text) const {
    const std::lock_guard lock(m_noticeMutex);
    m_notice = text;
}

EngineState ResidentEngine::state() const {
    EngineState state = m_device->state();
    {
        const std::lock_guard lock(m_noticeMutex);
        state.delegated.assign(m_delegated.begin(), m_delegated.end());
        if (!m_notice.empty()) state.notice = m_notice;
    }
    state.residentBytes = m_residency.residentBytes();
    state.memoryBytes = m_memoryBytes;
    state.threads = m_cpu->state().threads;
    return state;
}

} // namespace kvscope
