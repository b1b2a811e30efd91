#pragma once

#include "core/base/checkpoint.h"
#include "core/engine/engine.h"
#include "gpu/torch/torch_device.h"

#include <vector>

// The primitives that have CUDA kernels (gpu/primitives), on tensors of this engine, with LibTorch's memory and stream.
// Only for devices that run kernels.
namespace kvscope::gpu::kernels {

HostTensor rowNorms(const TorchDevice& device, const Tensor& keys);
/// Mean and NormalisedMean only.
HostTensor meanAnchor(const TorchDevice& device, const Tensor& keys, AnchorKind kind);
HostTensor similarity(const TorchDevice& device, const Tensor& keys, const HostTensor& anchor, SimilarityMetric metric);
HostTensor columnSums(const TorchDevice& device, const AttentionInput& input, Arithmetic arithmetic,
                      const Checkpoint& checkpoint);
HostTensor chunkSums(const TorchDevice& device, const AttentionChunksInput& input, Arithmetic arithmetic,
                     const Checkpoint& checkpoint);
AttentionMap attentionMap(const TorchDevice& device, const AttentionMapInput& input, Arithmetic arithmetic,
                          const Checkpoint& checkpoint);
std::vector<GreedyCenters> greedyCenters(const TorchDevice& device, const Tensor& keys, const CentersRequest& request,
                                         const Checkpoint& checkpoint);
std::vector<BalancingSteps> balancingWalks(const TorchDevice& device, const BalancingWalks& input,
                                           Arithmetic arithmetic, const Checkpoint& checkpoint);

} // namespace kvscope::gpu::kernels
