#pragma once

#include "core/base/error.h"

#include <string_view>

namespace kvscope::gpu {

/// The CUDA device refused or failed. The result is lost; the program goes on with a smaller batch or another engine.
class DeviceError : public Error {
public:
    enum class Cause { OutOfMemory, NoDevice, Lost, Other, Ours };

    /// `code` is a cudaError_t, `text` what CUDA says of it, `during` the kernel or call.
    DeviceError(int code, const char* text, const char* during);

    Cause cause() const noexcept { return m_cause; }

private:
    Cause m_cause;
};

/// The cause of a cudaError_t. An unknown code counts as a lost device from 700 on.
DeviceError::Cause causeOfCode(int code);
/// Classifies messages without a code, as from LibTorch: what names neither CUDA nor one of its libraries is Ours.
DeviceError::Cause causeOfText(std::string_view text);

} // namespace kvscope::gpu
