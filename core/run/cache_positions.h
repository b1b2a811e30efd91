#pragma once

#include "core/capture/capture.h"
#include "core/metrics/fidelity.h"
#include "core/policies/selection.h"

#include <memory>

namespace kvscope {

class Engine;

/// Can kept keys of a layer be turned to other positions (trap L6)? Throws Error with the remedy where the capture
/// lacks the inverse frequencies, or where no layer of it has RoPE at all. A layer without RoPE among others that have
/// it holds keys without positions: it passes, and nothing of it is turned.
void requireRotatableKeys(const CaptureReader& capture, const LayerInfo& layer);

/// The cache as StreamingLLM 3.2 reads it: the N kept keys of a KV head, in time order, turned to positions 0 ... N -
/// 1, and token t after the cut, key and query, turned to N + t - cut. A head with fewer keys than another starts at a
/// later row of the same tensor; its positions start at 0 all the same.
/// `input`: evaluation queries from the cut on. The layer is one that `requireRotatableKeys` lets pass.
std::shared_ptr<const MovedCache> moveIntoCache(const Engine& engine, const FidelityInput& input,
                                                const Selection& selection, const CaptureReader& capture,
                                                const LayerInfo& layer, const Checkpoint& checkpoint);

} // namespace kvscope
