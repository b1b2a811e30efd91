#pragma once

#include "core/engine/engine.h"

#include <cstddef>
#include <exception>
#include <utility>

namespace kvscope {

/// Consequence of a primitive's failure. Ours: not the device's fault. OutOfMemory: a smaller batch may succeed. Lost:
/// no further call can succeed. Refused: only this call failed; the device goes on.
enum class DeviceFailure { Ours, OutOfMemory, Lost, Refused };

/// An engine whose primitives run on a device and may fail because of it. ResidentEngine wraps a DeviceEngine: it
/// decides which tensors are resident on the device and what happens after a failure.
class DeviceEngine : public Engine {
public:
    /// Classifies what a primitive, an upload or a download threw.
    virtual DeviceFailure classify(const std::exception& failure) const = 0;
    /// Like upload, but callable from another thread while primitives run; the copy is complete when it returns.
    virtual Tensor uploadOnCopyStream(HostTensor numbers) const { return upload(std::move(numbers)); }
    /// Bytes that the tensor takes on the device.
    virtual std::size_t bytesOf(const Tensor& tensor) const {
        return static_cast<std::size_t>(tensor.shape().count()) * sizeof(float);
    }
    /// Halves the memory for intermediate results of later calls. False when it cannot shrink further.
    virtual bool shrink() const = 0;
    /// False when the device computes in host memory, which it cannot lose.
    virtual bool hasOwnMemory() const = 0;
};

} // namespace kvscope
