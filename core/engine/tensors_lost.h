#pragma once

#include "core/base/error.h"

namespace kvscope {

/// Thrown when an engine lost its device together with results that had no copy. The engine goes on (on the CPU): drop
/// the tensors that it computed and compute them again.
class TensorsLost : public Error {
public:
    using Error::Error;
};

} // namespace kvscope
