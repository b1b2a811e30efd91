#pragma once

#include "core/base/host_tensor.h"

namespace kvscope {

/// A tensor [H, n, d] that is too large to be in memory as a whole: its rows are read when they are needed.
class RowSource {
public:
    virtual ~RowSource() = default;
    virtual Shape shape() const = 0;
    virtual StoredType stored() const = 0;
    /// Rows [begin, begin + count) of one head into out [count, d]. Thread-safe. Throws Error, for NaN too.
    virtual void read(std::int64_t head, std::int64_t begin, std::int64_t count, float* out) const = 0;
};

/// The whole tensor. Throws Error.
HostTensor readAll(const RowSource& rows);

} // namespace kvscope
