// CUDA's events by the names that its runtime exports, so that this program needs no CUDA to be built.
#include "tests/bench/engine_check/device_clock.h"

#include <dlfcn.h>

namespace kvscope::check {

namespace {

template <class Function> bool find(void* library, const char* name, Function& function) {
    function = library ? reinterpret_cast<Function>(dlsym(library, name)) : nullptr;
    return function != nullptr;
}

} // namespace

DeviceClock::DeviceClock() {
    void* runtime = nullptr;
    for (const char* name : {"libcudart.so.13", "libcudart.so.12", "libcudart.so"})
        if (!runtime) runtime = dlopen(name, RTLD_LAZY | RTLD_NOLOAD); // the engine's own, never another one
    m_runs = find(runtime, "cudaEventCreate", m_create) && find(runtime, "cudaEventDestroy", m_destroy) &&
             find(runtime, "cudaEventRecord", m_record) && find(runtime, "cudaEventSynchronize", m_wait) &&
             find(runtime, "cudaEventElapsedTime", m_elapsed);
}

double DeviceClock::secondsOf(const std::function<void()>& work) const {
    Event begin = nullptr, end = nullptr;
    if (m_create(&begin) != 0 || m_create(&end) != 0) return -1;
    float milliseconds = -1;
    const bool begun = m_record(begin, nullptr) == 0;
    work();
    if (begun && m_record(end, nullptr) == 0 && m_wait(end) == 0 && m_elapsed(&milliseconds, begin, end) != 0)
        milliseconds = -1;
    m_destroy(begin);
    m_destroy(end);
    return double{milliseconds} / 1e3;
}

} // namespace kvscope::check
