// The metadata of a context that a worker has read. A worker is untrusted input, as a capture file is: every size is
// checked before anything is computed with it.
#include "app/live/context_info.h"

#include "core/base/error.h"
#include "core/capture/unread_head.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace kvscope::live {

namespace {

constexpr std::int64_t kLargestSize = 65536; // as in capture files

[[noreturn]] void refuse(const std::string& what) {
    throw Error({.sentence = "the worker describes a model that cannot be: " + what,
                 .remedy = "Give worker and program the same version"});
}

template <class Number> Number within(const Json& object, const char* name, Number least, Number most) {
    const Number value = object.at(name).get<Number>();
    if (!(value >= least && value <= most)) refuse(fmt::format("{} is {}", name, value));
    return value;
}

int sizeOf(const Json& object, const char* name) {
    return static_cast<int>(within<std::int64_t>(object, name, 1, kLargestSize));
}

/// The member; `otherwise` where it is absent or null.
template <class Value> Value optional(const Json& object, const char* name, Value otherwise) {
    const auto found = object.find(name);
    return found == object.end() || found->is_null() ? otherwise : found->get<Value>();
}

/// A Boolean member, which may also be 0 or 1.
bool flag(const Json& object, const char* name, bool otherwise) {
    const auto found = object.find(name);
    if (found == object.end() || found->is_null()) return otherwise;
    return found->is_boolean() ? found->get<bool>() : found->get<int>() != 0;
}

RopeInfo ropeOf(const Json& answer, int headDim) {
    RopeInfo rope;
    rope.rotaryDim = headDim;
    const auto json = answer.find("rope");
    if (json == answer.end() || json->is_null()) return rope;
    rope.type = optional<std::string>(*json, "type", "");
    rope.theta = optional(*json, "theta", 0.0);
    rope.attentionScaling = optional(*json, "attention_scaling", 1.0);
    rope.rotaryDim = optional(*json, "rotary_dim", headDim);
    rope.rotaryBegin = optional(*json, "rotary_begin", 0);
    rope.interleaved = optional<std::string>(*json, "layout", "half") == "interleaved";
    if (rope.rotaryDim < 0 || rope.rotaryDim > headDim || rope.rotaryDim % 2 != 0 || !(rope.attentionScaling > 0) ||
        rope.rotaryBegin < 0 || rope.rotaryBegin > headDim - rope.rotaryDim)
        refuse("its rope has sizes that do not fit its heads");
    return rope;
}

std::vector<std::int32_t> groupsOf(const Json& json, const CaptureInfo& info) {
    auto groups = optional(json, "kv_of_q", std::vector<std::int32_t>{});
    if (groups.empty() && info.numQueryHeads % info.numKvHeads == 0)
        for (int head = 0; head < info.numQueryHeads; ++head)
            groups.push_back(head / (info.numQueryHeads / info.numKvHeads));
    const auto isHead = [&](std::int32_t head) { return head >= 0 && head < info.numKvHeads; };
    if (static_cast<int>(groups.size()) != info.numQueryHeads || !std::ranges::all_of(groups, isHead))
        refuse("kv_of_q names no KV head for each query head");
    if (unreadHead(groups, info.numKvHeads) >= 0) refuse("kv_of_q leaves out a KV head");
    return groups;
}

LayerInfo layerOf(const Json& json, const CaptureInfo& info) {
    LayerInfo layer;
    layer.layer = LayerIndex(within<std::int64_t>(json, "layer", 0, info.numLayers - 1));
    layer.scaling = within(json, "scaling", 1e-30, 1e30);
    layer.softcap = std::max(0.0, optional(json, "softcap", 0.0));
    layer.slidingWindow = std::max<std::int64_t>(0, optional<std::int64_t>(json, "sliding_window", 0));
    layer.hasRope = flag(json, "has_rope", true);
    layer.qkNorm = flag(json, "qk_norm", false);
    layer.attentionType = optional<std::string>(json, "attn_type", "");
    layer.stage = optional<std::string>(json, "stage", "");
    layer.gqaGroupOf = groupsOf(json, info);
    layer.queryCount = within<std::int64_t>(json, "queries", 0, info.numTokens);
    layer.hasOutputProjection = optional<std::int64_t>(json, "hidden", 0) > 0;
    layer.storedType = storedTypeOf(json.at("dtype").get<std::string>());
    layer.sinks = optional(json, "sinks", std::vector<float>{});
    const bool isFinite = std::ranges::all_of(layer.sinks, [](float x) { return std::isfinite(x); });
    if (!isFinite || (!layer.sinks.empty() && static_cast<int>(layer.sinks.size()) != info.numQueryHeads))
        refuse("its attention sinks are no number for each query head");
    return layer;
}

} // namespace

StoredType storedTypeOf(const std::string& name) {
    if (const auto type = storedTypeNamed(name)) return *type;
    refuse("its tensors have the type '" + name + "', none of bf16, f16 and f32");
}

CaptureInfo captureInfoOf(const Json& answer, std::int64_t tokens) {
    CaptureInfo info;
    info.modelId = optional<std::string>(answer, "model_id", "");
    info.modelRevision = optional<std::string>(answer, "model_revision", "");
    info.tool = optional<std::string>(answer, "tool", "kvscope_live");
    info.created = optional<std::string>(answer, "created", "");
    info.notes = optional<std::string>(answer, "notes", "");
    info.numLayers = sizeOf(answer, "num_layers");
    info.numQueryHeads = sizeOf(answer, "num_q_heads");
    info.numKvHeads = sizeOf(answer, "num_kv_heads");
    info.headDim = sizeOf(answer, "head_dim");
    info.valueDim = sizeOf(answer, "value_dim");
    info.numTokens = tokens;
    info.rope = ropeOf(answer, info.headDim);
    for (const Json& layer : answer.at("layers")) info.layers.push_back(layerOf(layer, info));
    const auto isAfter = [](const LayerInfo& a, const LayerInfo& b) { return !(a.layer < b.layer); };
    if (info.layers.empty() || std::ranges::adjacent_find(info.layers, isAfter) != info.layers.end())
        refuse("its layers are not ascending");
    return info;
}

std::map<LayerIndex, std::vector<float>> frequenciesOf(const Json& answer, const CaptureInfo& info) {
    const Json all = optional(answer, "inv_freq", Json::object());
    std::map<LayerIndex, std::vector<float>> frequencies;
    for (const LayerInfo& layer : info.layers) {
        auto& own = frequencies[layer.layer];
        const auto found = all.contains(layer.attentionType) ? all.find(layer.attentionType) : all.find("");
        if (layer.hasRope && found != all.end()) own = found->get<std::vector<float>>();
        if (!own.empty() && own.size() != static_cast<std::size_t>(info.rope.rotaryDim / 2))
            refuse("its inverse frequencies do not fit rotary_dim");
        if (!std::ranges::all_of(own, [](float frequency) { return std::isfinite(frequency); }))
            refuse("an inverse frequency of the rotation is not finite");
    }
    return frequencies;
}

std::vector<Segment> segmentsOf(const Json& list, std::int64_t tokens) {
    std::vector<Segment> segments;
    for (const Json& row : list) {
        const auto begin = row.at(0).get<std::int64_t>(), end = row.at(1).get<std::int64_t>();
        const auto name = row.at(2).get<std::string>();
        const auto kind = segmentKindNamed(name);
        if (begin < 0 || begin > end || end > tokens || !kind)
            refuse(fmt::format("a segment '{}' runs from {} to {} of {} tokens", name, begin, end, tokens));
        segments.push_back({static_cast<TokenIndex>(begin), static_cast<TokenIndex>(end), *kind});
    }
    return segments;
}

} // namespace kvscope::live
