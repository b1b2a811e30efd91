// Handling of device failures, for all primitives in one place.
#include "gpu/resident_engine.h"

#include "core/base/error.h"

#include <new>
#include <utility>

namespace kvscope {

namespace {

/// The failure in its own words, without the remedy of an Error or the stack that LibTorch adds.
std::string wordsOf(const std::exception& failure) {
    if (const auto* error = dynamic_cast<const Error*>(&failure)) return error->parts().sentence;
    const std::string text = failure.what();
    return text.substr(0, text.find('\n'));
}

/// Call inside a handler, of a failure that is not the device's fault.
[[noreturn]] void rethrow(const std::string& call, const std::exception& failure) {
    if (dynamic_cast<const Error*>(&failure) || dynamic_cast<const std::bad_alloc*>(&failure)) throw;
    throw Error(
        {.sentence = call + " was given what it cannot compute: " + wordsOf(failure),
         .place = "engine",
         .remedy = "This is a mistake in KVScope, not of the device: report it with the command that led here"});
}

} // namespace

ResidentEngine::ResidentEngine(std::shared_ptr<const DeviceEngine> device, std::shared_ptr<const Engine> cpu,
                               std::size_t memoryBytes, bool strict)
    : m_device(std::move(device)), m_cpu(std::move(cpu)), m_memoryBytes(memoryBytes), m_strict(strict),
      m_residency(m_device, m_cpu, memoryBytes) {}

void ResidentEngine::Attempt::add(const Tensor& tensor) {
    if (tensor.empty()) return;
    std::string sizes;
    for (int axis = 0; axis < tensor.shape().rank(); ++axis)
        sizes += (axis > 0 ? ", " : "") + std::to_string(tensor.size(axis));
    shapes += (shapes.empty() ? "[" : ", [") + sizes + "]";
}

/// Call inside a handler. Throws what is not the device's fault. False: run this call on the CPU engine.
bool ResidentEngine::tryAgain(const Attempt& attempt, const std::exception& failure) const {
    if (dynamic_cast<const NoDeviceCode*>(&failure)) {
        const std::lock_guard lock(m_mutex);
        ++m_state.delegated[attempt.primitive];
        return false;
    }
    switch (m_device->classify(failure)) {
    case DeviceFailure::Ours: rethrow(attempt.text(), failure);
    case DeviceFailure::OutOfMemory:
        if (makeRoom()) return true;
        fallBack(attempt, "GPU memory is full: " + attempt.primitive + " ran on the CPU", wordsOf(failure));
        return false;
    case DeviceFailure::Refused:
        fallBack(attempt, "The GPU could not run " + attempt.primitive + ": it ran on the CPU", wordsOf(failure));
        return false;
    case DeviceFailure::Lost: break;
    }
    {
        const std::lock_guard lock(m_mutex);
        m_state.failure = attempt.text() + ": " + wordsOf(failure);
    }
    m_lost = true;
    m_residency.evictAll();
    return true; // which finds the device lost
}

/// Evicts all tensors and asks for smaller batches. False when that does not help.
bool ResidentEngine::makeRoom() const {
    m_residency.evictAll();
    try {
        if (!m_device->shrink()) return false;
    } catch (const std::exception&) { // a lost device fails again in the next call
        return false;
    }
    const std::lock_guard lock(m_mutex);
    m_state.notice = "GPU memory is full: smaller batches";
    return true;
}

/// Counts a call that the CPU engine is to repeat; throws in strict mode. Without `words` the last failure is the
/// cause.
void ResidentEngine::fallBack(const Attempt& attempt, const std::string& notice, const std::string& words) const {
    const std::lock_guard lock(m_mutex);
    if (!words.empty()) m_state.failure = attempt.text() + ": " + words;
    if (m_strict)
        throw Error({.sentence = attempt.text() + " did not run on the device: " +
                                 (words.empty() ? "it was lost in " + m_state.failure : words),
                     .place = "engine " + name() + ", strict",
                     .remedy = "An engine that is not strict repeats such a call on the CPU"});
    m_state.notice = notice;
    ++m_state.fallbacks[attempt.primitive];
}

EngineState ResidentEngine::state() const {
    const EngineState device = m_device->state(), cpu = m_cpu->state();
    const std::lock_guard lock(m_mutex);
    EngineState state = m_state;
    state.device = device.device;
    state.residentBytes = m_residency.residentBytes();
    state.memoryBytes = m_memoryBytes;
    state.threads = cpu.threads;
    return state;
}

} // namespace kvscope
