#pragma once

#include "core/engine/forwarding_engine.h"

#include <cstddef>
#include <exception>
#include <functional>
#include <utility>

namespace kvscope {

/// Consequence of a primitive's failure. Ours: not the device's fault, like shapes that do not fit. OutOfMemory: a
/// smaller batch may succeed. Lost: no further call can succeed. Refused: only this call failed; the device goes on.
enum class DeviceFailure { Ours, OutOfMemory, Lost, Refused };

/// Thrown for a primitive without device code: ResidentEngine runs it on the CPU engine.
class NoDeviceCode : public std::exception {
public:
    const char* what() const noexcept override { return "this primitive has no code for the device"; }
};

/// For primitives whose device code knows no attention sinks: the CPU engine computes a layer that has them.
inline void requireNoSinks(const AttentionRule& rule) {
    if (!rule.sinks.empty()) throw NoDeviceCode();
}

/// An engine whose primitives run on a device and may fail because of it. ResidentEngine wraps it and decides which
/// tensors are resident and what happens after a failure. A primitive that is not overridden throws NoDeviceCode.
class DeviceEngine : public ForwardedPrimitives<DeviceEngine> {
public:
    Tensor upload(HostTensor tensor) const override = 0;
    HostTensor download(const Tensor& tensor) const override = 0;
    Tensor rows(const Tensor& tensor, std::int64_t begin, std::int64_t end) const override = 0;
    Tensor gatherRows(const Tensor& tensor, const RowPositions& rows) const override = 0;

    /// Classifies what a primitive, an upload or a download threw.
    virtual DeviceFailure classify(const std::exception& failure) const = 0;
    /// Bytes that the tensor takes on the device.
    virtual std::size_t bytesOf(const Tensor& tensor) const {
        return static_cast<std::size_t>(tensor.shape().count()) * sizeof(float);
    }
    /// Reduces the memory for intermediate results of later calls. False when it cannot shrink further.
    virtual bool shrink() const = 0;
    /// Called before every call, on the calling thread: a thread may have a stream of its own on the device.
    virtual void enterThread() const {}

    template <class Call>
    auto run(const char*, const Call& call) const -> decltype(call(std::declval<const Engine&>(), std::identity())) {
        throw NoDeviceCode();
    }
};

} // namespace kvscope
