#pragma once

#include "core/base/row_source.h"
#include "core/capture/capture.h"
#include "core/capture/synthetic_spec.h"

#include <memory>
#include <string>

namespace kvscope {

CaptureInfo syntheticInfo(const SyntheticSpec& spec);
std::vector<float> syntheticFrequencies(const SyntheticSpec& spec); ///< [headDim / 2], or empty without RoPE

inline constexpr TensorRole kSyntheticRoles[] = {TensorRole::Keys, TensorRole::Values, TensorRole::Queries};
/// One of these tensors, as float before narrowing; the same numbers for any number of threads. The spec is sound.
std::unique_ptr<RowSource> syntheticRows(const SyntheticSpec& spec, LayerIndex layer, TensorRole role);

/// Writes layer by layer, atomically, with a hash. `sparse`: all tensors are zero and not on disk, without a hash,
/// so that any size takes milliseconds; for measuring how captures larger than memory open.
void writeSyntheticCapture(const SyntheticSpec& spec, const std::string& path, int deflateLevel, bool sparse,
                           const Checkpoint& checkpoint);

} // namespace kvscope
