#pragma once

#include "core/engine/engine.h"

#include <cstddef>
#include <exception>

namespace kvscope {

/// What the failure of a primitive means for the device.
enum class DeviceFailure { Ours, OutOfMemory, Lost };

/// An engine whose primitives run on a device and may fail for the device's sake. ResidentEngine wraps it: decides
/// which tensors lie in its memory, and what happens after a failure.
class DeviceEngine : public Engine {
public:
    /// Of what a primitive, upload or download threw. Ours: anything that is not the device's fault.
    virtual DeviceFailure classify(const std::exception& failure) const = 0;
    /// From now on less memory for intermediate results. False when it cannot get less.
    virtual bool shrink() const = 0;
    /// False when the device computes in host memory, which it cannot lose.
    virtual bool hasOwnMemory() const = 0;
};

} // namespace kvscope
