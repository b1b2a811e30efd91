#pragma once

#include "core/engine/engine.h"

#include <cstddef>
#include <exception>
#include <utility>

namespace kvscope {

/// What the failure of a primitive means for the device. Refused: this call failed for the device's sake, the device
/// goes on.
enum class DeviceFailure { Ours, OutOfMemory, Lost, Refused };

/// An engine whose primitives run on a device and may fail for the device's sake. ResidentEngine wraps it: decides
/// which tensors lie in its memory, and what happens after a failure.
class DeviceEngine : public Engine {
public:
    /// Of what a primitive, upload or download threw. Ours: anything that is not the device's fault.
    virtual DeviceFailure classify(const std::exception& failure) const = 0;
    /// As upload, from another thread than the one that runs primitives and beside them; complete when it returns.
    virtual Tensor uploadOnCopyStream(HostTensor numbers) const { return upload(std::move(numbers)); }
    /// Bytes that the tensor takes on the device.
    virtual std::size_t bytesOf(const Tensor& tensor) const {
        return static_cast<std::size_t>(tensor.shape().count()) * sizeof(float);
    }
    /// From now on less memory for intermediate results. False when it cannot get less.
    virtual bool shrink() const = 0;
    /// False when the device computes in host memory, which it cannot lose.
    virtual bool hasOwnMemory() const = 0;
};

} // namespace kvscope
