#pragma once

#include "core/base/checkpoint.h"
#include "core/engine/engine.h"
#include "gpu/primitives/device_memory.h"

// Primitives of core/engine/engine.h by CUDA kernels: converts requests to kernel calls and reads results back. Input
// tensors lie in device memory and results [H, n] stay there. Contracts are those of engine.h; long work is cut into
// slices of some tens of milliseconds with a checkpoint between them.
namespace kvscope::gpu {

/// norms [H, n].
void rowNorms(const DeviceMemory& memory, const DeviceRows& keys, float* norms);
/// anchors [H, d]; Mean and NormalisedMean only.
void meanAnchor(const DeviceMemory& memory, const DeviceRows& keys, AnchorKind kind, float* anchors);
/// similarities [H, n] to anchors [H, d].
void similarity(const DeviceMemory& memory, const DeviceRows& keys, const float* anchors, SimilarityMetric metric,
                float* similarities);

std::vector<GreedyCenters> greedyCenters(const DeviceMemory& memory, const DeviceRows& keys,
                                         const CentersRequest& request, const Checkpoint& checkpoint);

/// values.data null: no values; centres [H, d] or null. Only the walks of `input` are used.
std::vector<BalancingSteps> balancingWalks(const DeviceMemory& memory, const DeviceRows& keys, const DeviceRows& values,
                                           const float* centres, const BalancingWalks& input, Arithmetic arithmetic,
                                           const Checkpoint& checkpoint);

/// sums [Hq, m]. All of `input` but its tensors is used. At most 32 query heads per KV head.
void attentionColumnSums(const DeviceMemory& memory, const DeviceRows& queries, const DeviceRows& keys,
                         const AttentionInput& input, Arithmetic arithmetic, float* sums, const Checkpoint& checkpoint);

/// sums [Hq, n].
void attentionChunkSums(const DeviceMemory& memory, const DeviceRows& queries, const DeviceRows& keys,
                        const AttentionChunksInput& input, Arithmetic arithmetic, float* sums,
                        const Checkpoint& checkpoint);

AttentionMap attentionMap(const DeviceMemory& memory, const DeviceRows& queries, const DeviceRows& keys,
                          const AttentionMapInput& input, Arithmetic arithmetic, const Checkpoint& checkpoint);

} // namespace kvscope::gpu
