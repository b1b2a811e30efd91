#pragma once

#include "core/capture/capture.h"
#include "core/capture/memory_capture.h"
#include "core/capture/synthetic_spec.h"

#include <memory>
#include <string>

namespace kvscope {

CaptureInfo syntheticInfo(const SyntheticSpec& spec);
std::vector<float> syntheticFrequencies(const SyntheticSpec& spec); ///< [headDim / 2], or empty without RoPE
/// Keys, values or queries of one layer, [H, rows, d], as float before narrowing; the same numbers for any number of
/// threads.
HostTensor syntheticTensor(const SyntheticSpec& spec, LayerIndex layer, TensorRole role, const Checkpoint& checkpoint);

std::shared_ptr<MemoryCapture> makeSyntheticCapture(const SyntheticSpec& spec, const Checkpoint& checkpoint);

/// Writes layer by layer, atomically, with a hash. `sparse`: all tensors are zero and not on disk, without a hash,
/// so that any size takes milliseconds; for measuring how captures larger than memory open.
void writeSyntheticCapture(const SyntheticSpec& spec, const std::string& path, int deflateLevel, bool sparse,
                           const Checkpoint& checkpoint);

} // namespace kvscope
