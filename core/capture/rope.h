#pragma once

#include "core/base/host_tensor.h"
#include "core/capture/capture.h"

#include <span>
#include <vector>

namespace kvscope {

/// Inverse rotation: k_pre = R(-position) k / attention_scaling. Angles as the model computes them: float32 position
/// times float32 inverse frequency. tensor [H, rows, d] in place; positions [rows]; inverseFrequencies [rotaryDim / 2];
/// dimensions outside of [rotaryBegin, rotaryBegin + rotaryDim) stay. `stored` becomes Float32.
void rotateBack(HostTensor& tensor, std::span<const std::int64_t> positions, std::span<const float> inverseFrequencies,
                const RopeInfo& rope);

/// Cosines and sines [rotaryDim / 2] of one rotation.
struct RopeRotation {
    std::vector<double> cosine, sine;
};

/// The rotation from one position to another: the difference of the model's two angles.
RopeRotation rotationBetween(std::int64_t from, std::int64_t to, std::span<const float> inverseFrequencies);
/// Rotates one row [d] in place. RoPE was applied to it before, so it has the magnitude factor already.
void rotateRow(std::span<float> row, const RopeRotation& rotation, const RopeInfo& rope);

/// The forward rotation, with the same angles.
void rotateForward(HostTensor& tensor, std::span<const std::int64_t> positions,
                   std::span<const float> inverseFrequencies, const RopeInfo& rope);

} // namespace kvscope
