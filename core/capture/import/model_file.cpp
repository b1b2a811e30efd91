// The described model: what kvscope-describe resolved by Transformers' own classes. The file is untrusted.
#include "core/capture/import/model_file.h"

#include "core/base/error.h"
#include "core/base/json/json_text.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <numbers>

namespace kvscope {

namespace {

constexpr std::size_t kLargestFile = 1 << 24;
constexpr double kLargestFrequency = 1e6;
constexpr std::size_t kMostFrequencies = 1 << 24; // of all layers
constexpr std::int64_t kLargestSize = 65536, kLargestWhole = std::numeric_limits<std::int32_t>::max();

/// Checked access to the fields of one JSON object of a model's file.
class ModelJson {
public:
    using Json = nlohmann::json;
    /// `place` stands in front of field names in messages: "" or "layers[3]."
    ModelJson(const Json& json, const std::string& path, std::string place = {})
        : m_json(json), m_path(path), m_place(std::move(place)) {}

    /// The remedy is kvscope-describe.
    [[noreturn]] void fail(std::string sentence, const std::string& name) const {
        throw Error({std::move(sentence), m_place + name,
                     "Run kvscope-describe MODEL --out described_model.json, and lay that beside the tensors or "
                     "give it to kvscope convert --config",
                     m_path});
    }

    bool has(const char* name) const { return m_json.contains(name) && !m_json.at(name).is_null(); }
    std::string text(const char* name) const {
        if (!field(name).is_string()) fail("the field is no text", name);
        return field(name).get<std::string>();
    }
    bool flag(const char* name) const {
        if (!field(name).is_boolean()) fail("the field is neither true nor false", name);
        return field(name).get<bool>();
    }
    /// Finite, at least 0.
    double number(const char* name) const {
        const double value = field(name).is_number() ? field(name).get<double>() : NAN;
        if (!std::isfinite(value) || value < 0) fail("the field is no number from 0 up", name);
        return value;
    }
    /// At most 2^31 - 1.
    std::int64_t whole(const char* name, std::int64_t least = 0) const {
        const std::int64_t value = field(name).is_number_integer() ? field(name).get<std::int64_t>() : -1;
        if (value < least || value > kLargestWhole)
            fail(fmt::format("the field is no whole number from {} to {}", least, kLargestWhole), name);
        return value;
    }
    /// 1 to 65536.
    int size(const char* name) const {
        const std::int64_t value = whole(name, 1);
        if (value > kLargestSize) fail(fmt::format("{} is no size of a model", value), name);
        return static_cast<int>(value);
    }
    ModelJson object(const char* name) const {
        if (!field(name).is_object()) fail("the field is no object", name);
        return {field(name), m_path, m_place + name + "."};
    }
    /// Not empty.
    const Json& list(const char* name) const {
        if (!field(name).is_array() || field(name).empty()) fail("the field is no list with entries", name);
        return field(name);
    }
    const std::string& path() const { return m_path; }
    const Json& json() const { return m_json; }

private:
    const Json& field(const char* name) const {
        if (!m_json.is_object() || !has(name)) fail("the field is missing", name);
        return m_json.at(name);
    }

    const Json& m_json;
    const std::string& m_path;
    std::string m_place;
};

struct Rope {
    RopeInfo info;
    std::vector<float> inverseFrequencies;
};

/// Every layer keeps its own frequencies in memory, however few bytes of the file describe them.
void checkFrequencies(const ModelJson& json, std::size_t count, const char* place) {
    if (count > kMostFrequencies)
        json.fail(fmt::format("the layers have more than {} frequencies of rotation together, which no model has",
                              kMostFrequencies),
                  place);
}

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

/// The rotation that all layers share, except for its frequencies, which may differ between attention types.
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
    std::size_t frequencies = 0;
    for (std::size_t i = 0; i < layers.size(); ++i) {
        model.layers.push_back(readLayer({layers[i], json.path(), fmt::format("layers[{}].", i)}, ropes));
        frequencies += model.layers.back().inverseFrequencies.size();
        checkFrequencies(json, frequencies, "layers");
    }
    return model;
}

enum class Window { None, EveryLayer, Unused };

struct ModelType {
    const char* name;
    Window window;           ///< Unused: `sliding_window` counts only where `use_sliding_window` is true
    bool widthIsStated;      ///< head_dim has a default of its own, so it has to be in the file
    bool kvHeadsAreOptional; ///< as many as query heads when absent
};

constexpr ModelType kTypes[] = {
    {"llama", Window::None, false, true},
    {"mistral", Window::EveryLayer, false, false},
    {"qwen2", Window::Unused, false, false},
    {"qwen3", Window::Unused, true, false},
};

constexpr double kTheta = 10000; // of all types in the table

const ModelType& typeOf(const ModelJson& config) {
    const std::string name = config.has("model_type") ? config.text("model_type") : "";
    const auto* const type = std::ranges::find_if(kTypes, [&](const ModelType& t) { return name == t.name; });
    if (name.empty()) config.fail("the file names no model type", "model_type");
    if (type == std::end(kTypes))
        config.fail(fmt::format("the conventions of model type {} are not known here", name), "model_type");
    return *type;
}

/// Long wavelengths are stretched, short ones stay, those between are interpolated (Llama 3.1).
double llama3Frequency(double frequency, const ModelJson& rope) {
    const double factor = rope.number("factor"), low = rope.number("low_freq_factor"),
                 high = rope.number("high_freq_factor");
    const double turns =
        rope.number("original_max_position_embeddings") * frequency / (2 * std::numbers::pi); // in the trained length
    if (turns < low) return frequency / factor;
    if (turns > high) return frequency;
    const double smooth = (turns - low) / (high - low);
    return (1 - smooth) * frequency / factor + smooth * frequency;
}

std::vector<float> readRope(const ModelJson& config, RopeInfo& info, int headDim) {
    const char* const name = config.has("rope_parameters") ? "rope_parameters" : "rope_scaling";
    const ModelJson rope = config.has(name) ? config.object(name) : config;
    const bool scaled = config.has(name);
    for (const auto& [key, value] : rope.json().items())
        if (scaled && value.is_object())
            config.fail("rotations that differ between kinds of layers are not known here", name);
    const char* const kind = scaled && rope.has("rope_type") ? "rope_type" : "type";
    info.type = scaled && rope.has(kind) ? rope.text(kind) : "default";
    info.theta = scaled && rope.has("rope_theta") ? rope.number("rope_theta")
                 : config.has("rope_theta")       ? config.number("rope_theta")
                                                  : kTheta;
    info.rotaryDim = headDim;
    if (info.type != "default" && info.type != "linear" && info.type != "llama3")
        config.fail(fmt::format("rotations of type {} are not known here", info.type), name);
    if (config.has("partial_rotary_factor") || rope.has("partial_rotary_factor"))
        config.fail("partial rotations are not known here", "partial_rotary_factor");
    std::vector<float> frequencies;
    for (int i = 0; i < headDim; i += 2) {
        const double plain = std::pow(info.theta, -static_cast<double>(i) / headDim);
        frequencies.push_back(static_cast<float>(info.type == "linear"   ? plain / rope.number("factor")
                                                 : info.type == "llama3" ? llama3Frequency(plain, rope)
                                                                         : plain));
        if (!std::isfinite(frequencies.back())) config.fail("the field gives no finite frequencies", name);
    }
    return frequencies;
}

std::int64_t windowOf(const ModelJson& config, const ModelType& type) {
    if (type.window == Window::None) return 0;
    if (type.window == Window::EveryLayer) {
        if (!config.json().contains("sliding_window"))
            config.fail("the field is missing, and its default differs between versions", "sliding_window");
        return config.has("sliding_window") ? config.whole("sliding_window", 1) : 0;
    }
    if (config.has("use_sliding_window") && config.flag("use_sliding_window"))
        config.fail("which layers have the window is not known here", "use_sliding_window");
    return 0;
}

/// A `config.json` as the Hugging Face Hub has it. Throws Error.
DescribedModel readHubConfig(const ModelJson& config) {
    const ModelType& type = typeOf(config);
    DescribedModel model;
    model.source = fmt::format("fields of model type {}", type.name);
    if (config.has("_name_or_path")) model.modelId = config.text("_name_or_path");
    model.numQueryHeads = config.size("num_attention_heads");
    model.numKvHeads = type.kvHeadsAreOptional && !config.has("num_key_value_heads")
                           ? model.numQueryHeads
                           : config.size("num_key_value_heads");
    model.headDim = type.widthIsStated || config.has("head_dim") ? config.size("head_dim")
                                                                 : config.size("hidden_size") / model.numQueryHeads;
    if (model.headDim == 0 || model.headDim % 2 != 0) config.fail("heads of this width cannot rotate", "head_dim");
    model.valueDim = model.headDim;
    DescribedLayer layer;
    layer.scaling = 1 / std::sqrt(static_cast<double>(model.headDim));
    layer.slidingWindow = windowOf(config, type);
    layer.attentionType = layer.slidingWindow > 0 ? "sliding_attention" : "full_attention";
    layer.inverseFrequencies = readRope(config, model.rope, model.headDim);
    const auto layers = static_cast<std::size_t>(config.size("num_hidden_layers"));
    checkFrequencies(config, layers * layer.inverseFrequencies.size(), "num_hidden_layers");
    model.layers.assign(layers, layer);
    if (config.has("layer_types"))
        for (const auto& entry : config.list("layer_types"))
            if (entry != layer.attentionType)
                config.fail("which layers have the window is not known here", "layer_types");
    return model;
}

} // namespace

DescribedModel readDescribedModel(const std::string& path) {
    const auto json = parsedJson(readJsonText(path, kLargestFile));
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
