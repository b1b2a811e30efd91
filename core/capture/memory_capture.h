#pragma once

#include "core/capture/capture.h"

#include <map>
#include <utility>

namespace kvscope {

/// A capture that lives in memory: for tests, and for arrays that a caller has.
/// Fill the public members, then treat it as const.
class MemoryCapture final : public CaptureReader {
public:
    CaptureInfo captureInfo; ///< layers describe what `tensors` holds
    TokenTable tokenTable;
    std::vector<float> frequencies; ///< [rotaryDim / 2] or empty, the same for all layers
    std::map<std::pair<LayerIndex, TensorRole>, HostTensor> tensors;

    const CaptureInfo& info() const override { return captureInfo; }
    const TokenTable& tokens() const override { return tokenTable; }
    const std::vector<float>& inverseFrequencies(LayerIndex) const override { return frequencies; }
    /// As from a file: KeysPreRope is derived where it is absent; a missing tensor is an Error.
    HostTensor read(LayerIndex layer, TensorRole role, const Checkpoint& checkpoint) const override;
    std::string computeHash(const Checkpoint&) const override { return captureInfo.hash; }
};

} // namespace kvscope
