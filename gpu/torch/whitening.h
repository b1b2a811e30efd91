#pragma once

#include "core/engine/whitening.h"
#include "gpu/torch/torch_device.h"

#include <ATen/core/Tensor.h>

// Rows of heads and chunks, B problems at once, reduced to the small matrices that core/engine/whitening.h solves on
// the host: there all cores solve them in a fraction of the time that a GPU takes for small decompositions. For sources
// of this folder that include LibTorch's headers.
namespace kvscope::gpu {

/// W [B, k, k] on the device; what it holds is explained by Whitenings.
struct DeviceWhitenings {
    at::Tensor directions;
    Whitenings solved;
};

/// The whitenings of rows [B, n, k] in double. noise [B]: squared lengths below which a direction counts as rounding;
/// may be undefined.
DeviceWhitenings whiteningsOf(const TorchDevice& device, const at::Tensor& rows, const WhiteningRule& rule,
                              const at::Tensor& noise, bool wantsSpectrum);

} // namespace kvscope::gpu
