// Arrays of a running Python program as a one-layer capture, for the same code paths as files.
#include "app/python/array_capture.h"

#include "core/base/error.h"
#include "core/capture/unread_head.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

namespace kvscope {

namespace {

constexpr int kMostLayers = 65535;

[[noreturn]] void refuse(const char* argument, std::string sentence, std::string remedy) {
    throw Error({std::move(sentence), argument, std::move(remedy)});
}

void requireShape(const HostTensor& tensor, const Shape& shape, const char* argument) {
    if (!(tensor.shape == shape))
        refuse(argument,
               fmt::format("the shape is ({}, {}, {}), the other arrays ask for ({}, {}, {})", tensor.shape[0],
                           tensor.shape[1], tensor.shape[2], shape[0], shape[1], shape[2]),
               "Give keys and values as (KV heads, tokens, head_dim), queries as (query heads, last tokens, head_dim)");
}

TokenTable numberedTokens(std::int64_t tokens, std::vector<std::int64_t> positions) {
    TokenTable table;
    table.offsets.push_back(0);
    for (std::int64_t i = 0; i < tokens; ++i) {
        table.ids.push_back(static_cast<std::int32_t>(i));
        table.bytes += fmt::format(" #{}", i);
        table.offsets.push_back(static_cast<std::int64_t>(table.bytes.size()));
    }
    table.positions = std::move(positions);
    if (table.positions.empty()) {
        table.positions.resize(static_cast<std::size_t>(tokens));
        std::iota(table.positions.begin(), table.positions.end(), std::int64_t{0});
    }
    return table;
}

void checkNumbers(const LayerArrays& arrays, std::int64_t queryHeads) {
    const std::int64_t tokens = arrays.keys.shape[1], d = arrays.keys.shape[2];
    if (tokens > (std::int64_t{1} << 24))
        refuse("k", fmt::format("{} tokens are more than a prompt has", tokens), "Give one prompt");
    if (arrays.scaling && !(*arrays.scaling > 0 && std::isfinite(*arrays.scaling)))
        refuse("scaling", "the number is not positive and finite", "Leave it out for 1/sqrt(head_dim)");
    if (!(arrays.softcap >= 0) || !std::isfinite(arrays.softcap))
        refuse("softcap", "the number is negative or not finite", "Give 0 for none");
    if (std::max(arrays.layer, arrays.numLayers) > kMostLayers)
        refuse("layer", "no model has so many layers", "Give the layer's index in the model");
    if (arrays.numLayers != 0 && arrays.layer >= arrays.numLayers)
        refuse("layer", fmt::format("a model of {} layers has no layer {}", arrays.numLayers, arrays.layer),
               "Layers count from 0: give a smaller one, or another num_layers");
    const auto isFinite = [](float number) { return std::isfinite(number); };
    if (!std::ranges::all_of(arrays.sinks, isFinite)) refuse("sinks", "a logit is not finite", "Give finite logits");
    if (!std::ranges::all_of(arrays.frequencies, isFinite))
        refuse("rope", "an inverse frequency is not finite", "Give finite numbers");
    if (arrays.slidingWindow < 0) refuse("sliding_window", "the number is negative", "Give 0 for none");
    if (!arrays.sinks.empty() && std::ssize(arrays.sinks) != queryHeads)
        refuse("sinks", fmt::format("{} query heads need as many logits", queryHeads), "Give one for each query head");
    if (!arrays.positions.empty() && std::ssize(arrays.positions) != tokens)
        refuse("positions", fmt::format("{} tokens have {} positions", tokens, arrays.positions.size()),
               "Give one position for each token");
    if (!arrays.positions.empty() && arrays.frequencies.empty())
        refuse("positions", "positions change nothing without the rotation of the layer",
               "Give rope=kvscope.Rope(inv_freq) too, or leave positions out: causality and sliding windows follow the "
               "order of the tokens");
    if (arrays.rope.rotaryBegin < 0 || 2 * std::ssize(arrays.frequencies) + arrays.rope.rotaryBegin > d)
        refuse("rope",
               fmt::format("{} frequencies from component {} on rotate more than the {} components of a key",
                           arrays.frequencies.size(), arrays.rope.rotaryBegin, d),
               "Give one inverse frequency for each two rotated components");
    if (!(arrays.rope.attentionScaling > 0) || !std::isfinite(arrays.rope.attentionScaling))
        refuse("rope", "attention_scaling is not positive", "Give 1 for none");
}

std::vector<std::int32_t> headMap(std::vector<std::int32_t> map, int queryHeads, int kvHeads) {
    for (const std::int32_t head : map)
        if (std::ssize(map) != queryHeads || head < 0 || head >= kvHeads)
            refuse("kv_of_q", fmt::format("{} query heads need as many KV heads below {}", queryHeads, kvHeads),
                   "Give one for each query head");
    if (const std::int32_t unread = map.empty() ? -1 : unreadHead(map, kvHeads); unread >= 0)
        refuse("kv_of_q", fmt::format("no query head reads KV head {}", unread), "Leave its keys and values out");
    if (!map.empty()) return map;
    if (queryHeads % kvHeads != 0)
        refuse("q", fmt::format("{} query heads do not divide among {} KV heads", queryHeads, kvHeads), "Give kv_of_q");
    for (int head = 0; head < queryHeads; ++head) map.push_back(head / (queryHeads / kvHeads));
    return map;
}

} // namespace

std::shared_ptr<const CaptureReader> captureOf(LayerArrays arrays) {
    const Shape shape = arrays.keys.shape;
    requireShape(arrays.values, Shape{shape[0], shape[1], arrays.values.shape[2]}, "v");
    LayerInfo layer;
    layer.layer = LayerIndex(arrays.layer);
    layer.hasKeysPreRope = arrays.keysPreRope.has_value();
    layer.hasRope = layer.hasKeysPreRope || !arrays.frequencies.empty(); // else the layer counts as having none
    layer.attentionType = arrays.slidingWindow > 0 ? "sliding_attention" : "full_attention";
    layer.storedType = StoredType::Float32;
    layer.scaling = arrays.scaling.value_or(1 / std::sqrt(static_cast<double>(shape[2])));
    layer.softcap = arrays.softcap;
    layer.slidingWindow = arrays.slidingWindow;
    layer.sinks = arrays.sinks;
    std::int64_t queryHeads = shape[0];
    auto capture = std::make_shared<MemoryCapture>();
    if (arrays.queries) {
        queryHeads = arrays.queries->shape[0];
        layer.queryCount = arrays.queries->shape[1];
        requireShape(*arrays.queries, Shape{queryHeads, std::min(layer.queryCount, shape[1]), shape[2]}, "q");
        capture->tensors[{layer.layer, TensorRole::Queries}] = std::move(*arrays.queries);
    }
    if (arrays.keysPreRope) {
        requireShape(*arrays.keysPreRope, shape, "k_pre");
        capture->tensors[{layer.layer, TensorRole::KeysPreRope}] = std::move(*arrays.keysPreRope);
    }
    checkNumbers(arrays, queryHeads);
    layer.gqaGroupOf = headMap(std::move(arrays.groups), static_cast<int>(queryHeads), static_cast<int>(shape[0]));
    CaptureInfo& info = capture->captureInfo;
    info.fileName = info.path = "arrays";
    info.hash = "arrays";
    info.numLayers = arrays.numLayers != 0 ? arrays.numLayers : arrays.layer + 1;
    info.numQueryHeads = static_cast<int>(queryHeads);
    info.numKvHeads = static_cast<int>(shape[0]);
    info.headDim = static_cast<int>(shape[2]);
    info.valueDim = static_cast<int>(arrays.values.shape[2]);
    info.numTokens = shape[1];
    info.rope = arrays.rope;
    info.rope.rotaryDim = static_cast<int>(2 * arrays.frequencies.size());
    info.layers = {layer};
    capture->frequencies = std::move(arrays.frequencies);
    capture->tokenTable = numberedTokens(shape[1], std::move(arrays.positions));
    capture->tensors[{layer.layer, TensorRole::Keys}] = std::move(arrays.keys);
    capture->tensors[{layer.layer, TensorRole::Values}] = std::move(arrays.values);
    return capture;
}

} // namespace kvscope
