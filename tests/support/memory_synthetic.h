#pragma once

#include "core/capture/memory_capture.h"
#include "core/capture/synthetic_capture.h"
#include "core/capture/synthetic_text.h"
#include "core/capture/widen.h"

#include <algorithm>
#include <memory>
#include <string>

namespace kvscope {

/// The tensor after writing it in this type and reading it back.
inline HostTensor storable(HostTensor tensor, StoredType type) {
    if (type == StoredType::Float32) return tensor;
    const bool brain = type == StoredType::Bfloat16;
    std::vector<std::uint16_t> bits(tensor.data.size());
    std::ranges::transform(tensor.data, bits.begin(), brain ? narrowToBfloat16 : narrowToFloat16);
    (brain ? widenBfloat16 : widenFloat16)(bits, tensor.data.data());
    tensor.stored = type;
    return tensor;
}

/// What a reader gives of the file that writeSyntheticCapture writes.
inline std::shared_ptr<MemoryCapture> makeSyntheticCapture(const SyntheticSpec& spec) {
    auto capture = std::make_shared<MemoryCapture>();
    capture->tokenTable = syntheticTokens(spec);
    capture->captureInfo = syntheticInfo(spec);
    capture->captureInfo.fileName = capture->captureInfo.path = "synthetic";
    capture->captureInfo.hash = "synthetic:" + std::to_string(spec.seed) + ":" + std::to_string(spec.tokens);
    capture->frequencies = syntheticFrequencies(spec);
    for (const LayerInfo& info : capture->captureInfo.layers)
        for (const TensorRole role : kSyntheticRoles)
            capture->tensors[{info.layer, role}] =
                storable(readAll(*syntheticRows(spec, info.layer, role)), spec.storedType);
    return capture;
}

} // namespace kvscope
