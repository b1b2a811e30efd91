#pragma once

#include "core/base/random.h"
#include "core/capture/memory_capture.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>

namespace kvscope {

inline HostTensor gaussianTensor(std::uint64_t seed, LayerIndex layer, TensorRole role, int heads, std::int64_t rows,
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

inline TokenTable wordTokens(std::int64_t tokens) {
    TokenTable table;
    table.offsets.push_back(0);
    for (std::int64_t i = 0; i < tokens; ++i) {
        table.ids.push_back(static_cast<std::int32_t>(i));
        table.positions.push_back(i);
        table.bytes += " w" + std::to_string(i);
        table.offsets.push_back(static_cast<std::int64_t>(table.bytes.size()));
    }
    table.segments.push_back(
        {0, static_cast<TokenIndex>(std::max<std::int64_t>(1, tokens * 3 / 4)), SegmentKind::Context});
    return table;
}

/// Seeded Gaussian keys, values and all queries in every layer, one word per token, one context segment over the first
/// 3/4 of the tokens.
inline std::shared_ptr<MemoryCapture> makeRandomCapture(std::uint64_t seed, std::int64_t tokens, int layers,
                                                        int queryHeads, int kvHeads, int headDim) {
    auto capture = std::make_shared<MemoryCapture>();
    capture->tokenTable = wordTokens(tokens);
    CaptureInfo& info = capture->captureInfo;
    info.fileName = info.path = "random-" + std::to_string(seed) + "-" + std::to_string(tokens) + ".memory";
    info.hash = "random";
    for (const std::int64_t number : {static_cast<std::int64_t>(seed), tokens, std::int64_t{layers},
                                      std::int64_t{queryHeads}, std::int64_t{kvHeads}, std::int64_t{headDim}})
        info.hash += ":" + std::to_string(number);
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
