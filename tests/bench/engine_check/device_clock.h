#pragma once

#include <functional>

namespace kvscope::check {

/// The GPU's own clock, for times that leave out what the host does before and after. Uses the CUDA runtime that the
/// engine has opened; on a machine without one there is no such clock.
class DeviceClock {
public:
    /// For an engine that runs on CUDA.
    DeviceClock();

    bool runs() const { return m_runs; }
    /// Seconds between two events on the default stream, around the work; negative when CUDA refuses.
    double secondsOf(const std::function<void()>& work) const;

private:
    using Event = void*;
    int (*m_create)(Event*) = nullptr;
    int (*m_destroy)(Event) = nullptr;
    int (*m_record)(Event, void* stream) = nullptr;
    int (*m_wait)(Event) = nullptr;
    int (*m_elapsed)(float* milliseconds, Event, Event) = nullptr;
    bool m_runs = false;
};

} // namespace kvscope::check
