#pragma once

#include "core/base/checkpoint.h"
#include "core/engine/engine.h"
#include "core/engine/whitening.h"
#include "gpu/primitives/device_memory.h"

// Primitives of core/engine/engine.h by CUDA kernels: converts requests to kernel calls and reads results back. Input
// tensors lie in device memory. Contracts are those of engine.h; the tensors in a request are not used. One copy in
// (none for primitives without lists), one copy out, and no wait in between unless the work is long (long_work.h).
namespace kvscope::gpu {

HostTensor rowNorms(const DeviceMemory& memory, const DeviceRows& keys);
/// Mean and NormalisedMean only.
HostTensor meanAnchor(const DeviceMemory& memory, const DeviceRows& keys, AnchorKind kind);
HostTensor similarity(const DeviceMemory& memory, const DeviceRows& keys, const HostTensor& anchors,
                      SimilarityMetric metric);

std::vector<GreedyCenters> greedyCenters(const DeviceMemory& memory, const DeviceRows& keys,
                                         const CentersRequest& request, const Checkpoint& checkpoint);

/// Solves the small matrices on the host: kvscope::whiteningsOf, which only builds with the CPU engine have.
using WhiteningSolver = decltype(&whiteningsOf);
/// Sketches of up to 64 columns without chunks, by Gram matrix.
bool hasLeverageKernel(const LeverageRequest& request);
Leverage leverage(const DeviceMemory& memory, const DeviceRows& rows, const LeverageRequest& request,
                  WhiteningSolver solve, const Checkpoint& checkpoint);

/// values.data null: no values.
std::vector<BalancingSteps> balancingWalks(const DeviceMemory& memory, const DeviceRows& keys, const DeviceRows& values,
                                           const BalancingWalks& input, Arithmetic arithmetic,
                                           const Checkpoint& checkpoint);

HostTensor attentionColumnSums(const DeviceMemory& memory, const DeviceRows& queries, const DeviceRows& keys,
                               const AttentionInput& input, Arithmetic arithmetic, const Checkpoint& checkpoint);
HostTensor attentionChunkSums(const DeviceMemory& memory, const DeviceRows& queries, const DeviceRows& keys,
                              const AttentionChunksInput& input, Arithmetic arithmetic, const Checkpoint& checkpoint);

/// reference.data null: none.
WeightedAttention weightedAttention(const DeviceMemory& memory, const DeviceRows& queries, const DeviceRows& keys,
                                    const DeviceRows& values, const DeviceRows& reference,
                                    const WeightedAttentionInput& input, Arithmetic arithmetic,
                                    const Checkpoint& checkpoint);

/// At most kMostMapHeads query heads.
AttentionMap attentionMap(const DeviceMemory& memory, const DeviceRows& queries, const DeviceRows& keys,
                          const AttentionMapInput& input, Arithmetic arithmetic, const Checkpoint& checkpoint);
inline constexpr int kMostMapHeads = 32; ///< of one tile, in which they are combined

} // namespace kvscope::gpu
