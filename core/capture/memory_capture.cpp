// A capture in memory, with the same behaviour as the HDF5 reader.
#include "core/capture/memory_capture.h"

#include "core/base/error.h"
#include "core/base/gaussian.h"
#include "core/capture/rope.h"
#include "core/capture/widen.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace kvscope {

HostTensor MemoryCapture::read(LayerIndex layer, TensorRole role, const Checkpoint& checkpoint) const {
    checkpoint.at(0, 1);
    const LayerInfo& info = captureInfo.layerInfo(layer);
    if (const auto found = tensors.find({layer, role}); found != tensors.end()) return found->second;
    if (role != TensorRole::KeysPreRope)
        throw Error({.sentence = fmt::format("layer {} does not hold this tensor", layer.value),
                     .remedy = "Capture the prompt with it",
                     .path = captureInfo.path});
    HostTensor keys = read(layer, TensorRole::Keys, checkpoint);
    if (info.hasRope && !frequencies.empty()) rotateBack(keys, tokenTable.positions, frequencies, captureInfo.rope);
    return keys;
}

HostTensor storable(HostTensor tensor, StoredType type) {
    if (type == StoredType::Float32) return tensor;
    const bool brain = type == StoredType::Bfloat16;
    std::vector<std::uint16_t> bits(tensor.data.size());
    std::transform(tensor.data.begin(), tensor.data.end(), bits.begin(), brain ? narrowToBfloat16 : narrowToFloat16);
    (brain ? widenBfloat16 : widenFloat16)(bits, tensor.data.data());
    tensor.stored = type;
    return tensor;
}

namespace {

HostTensor gaussianTensor(std::uint64_t seed, LayerIndex layer, TensorRole role, int heads, std::int64_t rows,
                          int width) {
    HostTensor tensor{Shape{heads, rows, width}, {}};
    for (int h = 0; h < heads; ++h)
        for (std::int64_t r = 0; r < rows; ++r)
            for (int c = 0; c < width; ++c)
                tensor.data.push_back(static_cast<float>(gaussianAt({.seed = seed,
                                                                     .layer = static_cast<std::uint32_t>(layer.value),
                                                                     .kvHead = static_cast<std::uint32_t>(h),
                                                                     .round = static_cast<std::uint32_t>(role),
                                                                     .token = static_cast<std::uint32_t>(r),
                                                                     .slot = static_cast<std::uint32_t>(c)})));
    return tensor;
}

TokenTable wordTokens(std::int64_t tokens) {
    TokenTable table;
    table.offsets.push_back(0);
    for (std::int64_t i = 0; i < tokens; ++i) {
        table.ids.push_back(static_cast<std::int32_t>(i));
        table.positions.push_back(i);
        table.bytes += fmt::format(" w{}", i);
        table.offsets.push_back(static_cast<std::int64_t>(table.bytes.size()));
    }
    table.segments.push_back(
        {0, static_cast<TokenIndex>(std::max<std::int64_t>(1, tokens * 3 / 4)), SegmentKind::Context});
    return table;
}

} // namespace

std::shared_ptr<MemoryCapture> makeRandomCapture(std::uint64_t seed, std::int64_t tokens, int layers, int queryHeads,
                                                 int kvHeads, int headDim) {
    auto capture = std::make_shared<MemoryCapture>();
    capture->tokenTable = wordTokens(tokens);
    CaptureInfo& info = capture->captureInfo;
    info.fileName = info.path = fmt::format("random-{}-{}.memory", seed, tokens);
    info.hash = fmt::format("random:{}:{}:{}:{}:{}:{}", seed, tokens, layers, queryHeads, kvHeads, headDim);
    info.numLayers = layers;
    info.numQueryHeads = queryHeads;
    info.numKvHeads = kvHeads;
    info.headDim = info.valueDim = headDim;
    info.numTokens = tokens;
    info.rope.rotaryDim = headDim;
    for (int l = 0; l < layers; ++l) {
        LayerInfo layer;
        layer.layer = LayerIndex(l);
        layer.scaling = 1 / std::sqrt(static_cast<double>(headDim));
        layer.hasRope = false;
        layer.queryCount = tokens;
        layer.storedType = StoredType::Float32;
        for (int h = 0; h < queryHeads; ++h) layer.gqaGroupOf.push_back(h / (queryHeads / kvHeads));
        info.layers.push_back(layer);
        for (const auto role : {TensorRole::Keys, TensorRole::Values, TensorRole::Queries})
            capture->tensors[{layer.layer, role}] = gaussianTensor(
                seed, layer.layer, role, role == TensorRole::Queries ? queryHeads : kvHeads, tokens, headDim);
    }
    return capture;
}

} // namespace kvscope
