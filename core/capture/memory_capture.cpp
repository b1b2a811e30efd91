// A capture in memory, with the same behaviour as the HDF5 reader.
#include "core/capture/memory_capture.h"

#include "core/base/error.h"
#include "core/capture/rope.h"

#include <fmt/format.h>

namespace kvscope {

HostTensor MemoryCapture::read(LayerIndex layer, TensorRole role, const Checkpoint& checkpoint) const {
    checkpoint.at(0, 1);
    const LayerInfo& info = captureInfo.layerInfo(layer);
    if (const auto found = tensors.find({layer, role}); found != tensors.end()) return found->second;
    if (role != TensorRole::KeysPreRope)
        throw Error({fmt::format("layer {} does not hold this tensor", layer.value), "", "Capture the prompt with it",
                     captureInfo.path});
    HostTensor keys = read(layer, TensorRole::Keys, checkpoint);
    if (info.hasRope && !frequencies.empty()) rotateBack(keys, tokenTable.positions, frequencies, captureInfo.rope);
    return keys;
}

} // namespace kvscope
