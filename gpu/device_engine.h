#pragma once

#include "core/engine/forwarding_engine.h"

#include <cstddef>
#include <exception>
#include <functional>
#include <utility>

namespace kvscope {

/// What the failure of a primitive means for the device. Refused: this call failed for the device's sake, the device
/// goes on.
enum class DeviceFailure { Ours, OutOfMemory, Lost, Refused };

/// The device has no code for this primitive: ResidentEngine leaves it to the CPU engine.
class NoDeviceCode : public std::exception {
public:
    const char* what() const noexcept override { return "this primitive has no code for the device"; }
};

/// An engine whose primitives run on a device and may fail for the device's sake. ResidentEngine wraps it: decides
/// which tensors lie in its memory, and what happens after a failure. A primitive that is not overridden throws
/// NoDeviceCode.
class DeviceEngine : public ForwardedPrimitives<DeviceEngine> {
public:
    Tensor upload(HostTensor tensor) const override = 0;
    HostTensor download(const Tensor& tensor) const override = 0;
    Tensor rows(const Tensor& tensor, std::int64_t begin, std::int64_t end) const override = 0;
    Tensor gatherRows(const Tensor& tensor, const RowPositions& rows) const override = 0;

    /// Of what a primitive, upload or download threw. Ours: anything that is not the device's fault.
    virtual DeviceFailure classify(const std::exception& failure) const = 0;
    /// Bytes that the tensor takes on the device.
    virtual std::size_t bytesOf(const Tensor& tensor) const {
        return static_cast<std::size_t>(tensor.shape().count()) * sizeof(float);
    }
    /// From now on less memory for intermediate results. False when it cannot get less.
    virtual bool shrink() const = 0;

    template <class Call>
    auto run(const char*, const Call& call) const -> decltype(call(std::declval<const Engine&>(), std::identity())) {
        throw NoDeviceCode();
    }
};

} // namespace kvscope
