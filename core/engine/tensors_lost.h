#pragma once

#include "core/base/error.h"

namespace kvscope {

/// An engine lost its device and with it results that were nowhere else. The engine itself goes on (on the CPU):
/// whoever holds tensors that it computed drops them and computes again.
class TensorsLost : public Error {
public:
    using Error::Error;
};

} // namespace kvscope
