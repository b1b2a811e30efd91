#pragma once

#include "core/engine/tensor.h"

namespace kvscope {

/// What an engine with memory of its own can do beside its primitives: take a tensor there before one of them needs it,
/// from another thread, so that copying and computing overlap. A sweep asks for the next layer's tensors this way.
class Prefetching {
public:
    virtual ~Prefetching() = default;

    /// Returns when the tensor is there, or at once where it is already, where nothing has to be copied, and where it
    /// does not fit beside what is there. A failure of the device is no failure of this call: the primitive that needs
    /// the tensor uploads it and meets the failure again. Thread-safe.
    virtual void prefetch(const Tensor& tensor) const = 0;
};

} // namespace kvscope
