// The described model: what kvscope-describe resolved by Transformers' own classes. The file is untrusted.
#include "core/capture/import/model_file.h"

#include "core/base/error.h"
#include "core/base/json_text.h"
#include "core/capture/import/model_json.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <map>

namespace kvscope {

namespace {

constexpr std::size_t kLargestFile = 1 << 24;
constexpr double kLargestFrequency = 1e6;
constexpr std::int64_t kLargestSize = 65536, kLargestWhole = std::numeric_limits<std::int32_t>::max();

struct Rope {
    RopeInfo info;
    std::vector<float> inverseFrequencies;
};

Rope readRope(const ModelJson& json, int headDim) {
    Rope rope;
    rope.info.type = json.text("type");
    rope.info.theta = json.number("theta");
    rope.info.attentionScaling = json.number("attention_scaling");
    rope.info.rotaryDim = json.size("rotary_dim");
    rope.info.rotaryBegin = static_cast<int>(json.whole("rotary_begin"));
    const std::string layout = json.text("layout");
    rope.info.interleaved = layout == "interleaved";
    if (!(rope.info.attentionScaling > 0)) json.fail("the field is not positive", "attention_scaling");
    if (layout != "half" && !rope.info.interleaved)
        json.fail("the field is neither \"half\" nor \"interleaved\"", "layout");
    if (rope.info.rotaryDim % 2 != 0 || rope.info.rotaryBegin > headDim ||
        rope.info.rotaryDim > headDim - rope.info.rotaryBegin)
        json.fail(fmt::format("the rotated components are not an even number within the {} of a head", headDim),
                  "rotary_dim");
    const auto& list = json.list("inv_freq");
    if (static_cast<int>(list.size()) != rope.info.rotaryDim / 2)
        json.fail("there are not half as many frequencies as rotated components", "inv_freq");
    for (const auto& entry : list) {
        const double frequency = entry.is_number() ? entry.get<double>() : -1;
        if (!(frequency >= 0) || frequency > kLargestFrequency) json.fail("an entry is no frequency", "inv_freq");
        rope.inverseFrequencies.push_back(static_cast<float>(frequency));
    }
    return rope;
}

DescribedLayer readLayer(const ModelJson& json, const std::map<std::string, Rope>& ropes) {
    DescribedLayer layer;
    layer.attentionType = json.text("attn_type");
    layer.scaling = json.number("scaling");
    if (!(layer.scaling > 0)) json.fail("the field is not positive", "scaling");
    layer.softcap = json.number("softcap");
    layer.slidingWindow = json.whole("sliding_window");
    layer.sinks = json.flag("sinks");
    if (!json.has("rope")) return layer;
    const auto rope = ropes.find(json.text("rope"));
    if (rope == ropes.end()) json.fail("the file describes no rotation of this name", "rope");
    layer.inverseFrequencies = rope->second.inverseFrequencies;
    return layer;
}

/// The one rotation of all layers but for its frequencies, which may differ between attention types.
RopeInfo commonRope(const ModelJson& json, const std::map<std::string, Rope>& ropes) {
    RopeInfo common;
    common.type = "none";
    if (ropes.empty()) return common;
    common = ropes.begin()->second.info;
    for (const auto& [name, rope] : ropes)
        if (rope.info.rotaryDim != common.rotaryDim || rope.info.rotaryBegin != common.rotaryBegin ||
            rope.info.interleaved != common.interleaved || rope.info.attentionScaling != common.attentionScaling)
            json.fail("layers differ in rotated components, layout or magnitude, which no capture holds",
                      "ropes." + name);
    return common;
}

DescribedModel readDescription(const ModelJson& json) {
    if (json.whole("version") != 1) json.fail("this program reads version 1", "version");
    DescribedModel model;
    model.modelId = json.text("model_id");
    model.source = fmt::format("Transformers {} ({})", json.text("transformers_version"), json.text("config_class"));
    model.numQueryHeads = json.size("num_q_heads");
    model.numKvHeads = json.size("num_kv_heads");
    model.headDim = json.size("head_dim");
    model.valueDim = json.size("value_dim");
    if (json.has("prompt_tokens")) model.promptTokens = json.whole("prompt_tokens", 1);
    std::map<std::string, Rope> ropes;
    const ModelJson described = json.object("ropes");
    for (const auto& [name, rope] : described.json().items())
        ropes[name] = readRope(described.object(name.c_str()), model.headDim);
    model.rope = commonRope(json, ropes);
    const auto& layers = json.list("layers");
    if (static_cast<int>(layers.size()) != json.size("num_layers"))
        json.fail(fmt::format("{} layers are described", layers.size()), "num_layers");
    for (std::size_t i = 0; i < layers.size(); ++i)
        model.layers.push_back(readLayer({layers[i], json.path(), fmt::format("layers[{}].", i)}, ropes));
    return model;
}

} // namespace

void ModelJson::fail(std::string sentence, const std::string& name) const {
    throw Error({.sentence = std::move(sentence),
                 .place = m_place + name,
                 .remedy = "Run kvscope-describe MODEL --out described_model.json, and lay that beside the tensors or "
                           "give it to kvscope convert --config",
                 .path = m_path});
}

const ModelJson::Json& ModelJson::field(const char* name) const {
    if (!m_json.is_object() || !has(name)) fail("the field is missing", name);
    return m_json.at(name);
}

std::string ModelJson::text(const char* name) const {
    if (!field(name).is_string()) fail("the field is no text", name);
    return field(name).get<std::string>();
}

bool ModelJson::flag(const char* name) const {
    if (!field(name).is_boolean()) fail("the field is neither true nor false", name);
    return field(name).get<bool>();
}

double ModelJson::number(const char* name) const {
    const double value = field(name).is_number() ? field(name).get<double>() : NAN;
    if (!std::isfinite(value) || value < 0) fail("the field is no number from 0 up", name);
    return value;
}

std::int64_t ModelJson::whole(const char* name, std::int64_t least) const {
    const std::int64_t value = field(name).is_number_integer() ? field(name).get<std::int64_t>() : -1;
    if (value < least || value > kLargestWhole)
        fail(fmt::format("the field is no whole number from {} to {}", least, kLargestWhole), name);
    return value;
}

int ModelJson::size(const char* name) const {
    const std::int64_t value = whole(name, 1);
    if (value > kLargestSize) fail(fmt::format("{} is no size of a model", value), name);
    return static_cast<int>(value);
}

ModelJson ModelJson::object(const char* name) const {
    if (!field(name).is_object()) fail("the field is no object", name);
    return {field(name), m_path, m_place + name + "."};
}

const ModelJson::Json& ModelJson::list(const char* name) const {
    if (!field(name).is_array() || field(name).empty()) fail("the field is no list with entries", name);
    return field(name);
}

DescribedModel readDescribedModel(const std::string& path) {
    const auto json = nlohmann::json::parse(readJsonText(path, kLargestFile), nullptr, false);
    const ModelJson root(json, path);
    if (!json.is_object()) root.fail("the file is not a JSON object", "");
    DescribedModel model = root.has("format") && root.text("format") == "kvscope-described-model"
                               ? readDescription(root)
                               : readHubConfig(root);
    if (model.numQueryHeads % model.numKvHeads != 0)
        root.fail(fmt::format("{} query heads do not divide among {} KV heads", model.numQueryHeads, model.numKvHeads),
                  "");
    return model;
}

} // namespace kvscope
