#pragma once

#include "core/capture/capture.h"
#include "core/metrics/fidelity.h"
#include "core/policies/selection.h"

#include <memory>

namespace kvscope {

class Engine;
struct RunRequest;

/// Whether kept keys are measured at positions in the cache (L6). For a recorded list its parameters say so.
bool hasCachePositions(const RunRequest& request);

/// Checks that kept keys of a layer can be rotated to other positions (L6). Throws Error with the remedy where the
/// capture lacks the inverse frequencies, or where no layer of it has RoPE. A layer without RoPE in a model that has it
/// elsewhere passes: its keys have no positions and stay as they are.
void requireRotatableKeys(const CaptureReader& capture, const LayerInfo& layer);

/// The cache of StreamingLLM 3.2: the N kept keys of a KV head, in time order, rotated to positions 0 ... N - 1, and
/// token t after the cut, key and query, rotated to N + t - cut. Heads with fewer keys start at a later row of the same
/// tensor, but their positions start at 0 too. `input` has evaluation queries from the cut on. `requireRotatableKeys`
/// must have passed. Throws Error where query heads keep sets of their own.
std::shared_ptr<const MovedCache> moveIntoCache(const Engine& engine, const FidelityInput& input,
                                                const Selection& selection, const CaptureReader& capture,
                                                const LayerInfo& layer, const Checkpoint& checkpoint);

} // namespace kvscope
