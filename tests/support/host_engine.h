#pragma once

#include "core/engine/engine.h"

namespace kvscope {

/// Holds whole tensors in host memory and computes nothing: every primitive throws an Error that names it. What the
/// kernels are checked with where the CPU engine cannot be built.
std::unique_ptr<Engine> makeHostEngine();

} // namespace kvscope
