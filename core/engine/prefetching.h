#pragma once

#include "core/engine/tensor.h"

namespace kvscope {

/// Interface of engines with their own memory: uploads a tensor before a primitive needs it, from another thread, so
/// that copying overlaps computing. A sweep prefetches the next layer.
class Prefetching {
public:
    virtual ~Prefetching() = default;

    /// Returns when the tensor is resident; at once if it is already, needs no copy, or does not fit without an
    /// eviction. Device failures are not reported: the primitive that needs the tensor uploads it and meets the failure
    /// again. Thread-safe.
    virtual void prefetch(const Tensor& tensor) const = 0;
};

} // namespace kvscope
