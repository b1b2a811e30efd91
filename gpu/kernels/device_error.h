#pragma once

#include "core/base/error.h"

namespace kvscope::gpu {

/// The CUDA device refused or failed. The work is lost, the program goes on with a smaller batch or another engine.
class DeviceError : public Error {
public:
    enum class Cause { OutOfMemory, NoDevice, Lost, Other };

    /// `code` is a cudaError_t, `text` what CUDA says of it, `during` the kernel or call.
    DeviceError(int code, const char* text, const char* during);

    Cause cause() const noexcept { return m_cause; }

private:
    Cause m_cause;
};

} // namespace kvscope::gpu
