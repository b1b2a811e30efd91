#pragma once

#include "core/base/host_tensor.h"
#include "core/capture/capture.h"

#include <span>

namespace kvscope {

/// Turns rotated rows back: k_pre = R(-position) k / attention_scaling (policies.md 0.8). Angles as the model makes
/// them: float32 position times float32 inverse frequency. tensor [H, rows, d] in place; positions [rows];
/// inverseFrequencies [rotaryDim / 2]; dimensions beyond rotaryDim are left alone.
void rotateBack(HostTensor& tensor, std::span<const std::int64_t> positions, std::span<const float> inverseFrequencies,
                const RopeInfo& rope);

/// The forward rotation, with the same angles.
void rotateForward(HostTensor& tensor, std::span<const std::int64_t> positions,
                   std::span<const float> inverseFrequencies, const RopeInfo& rope);

} // namespace kvscope
