// Reads the metadata that importers need from a model's configuration file: files of keys and values state neither the
// number of heads nor the RoPE parameters.
#include "core/capture/import/model_config.h"

#include "core/base/atomic_file.h"
#include "core/base/error.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace kvscope {

namespace {

using Json = nlohmann::json;

constexpr std::size_t kLargestConfig = 1 << 22;
constexpr std::int64_t kLargestSize = 65536;

class ConfigReader {
public:
    explicit ConfigReader(const std::string& path) : m_path(path) {
        m_json = Json::parse(readWholeFile(path, kLargestConfig), nullptr, false);
        if (!m_json.is_object()) fail("the file is not a JSON object", "");
        // multimodal models keep the language model's fields apart
        if (m_json.contains("text_config") && m_json["text_config"].is_object()) m_json = Json(m_json["text_config"]);
    }

    [[noreturn]] void fail(std::string sentence, std::string field) const {
        throw Error({.sentence = std::move(sentence),
                     .place = std::move(field),
                     .remedy = "Give the config.json of the model that wrote the tensors",
                     .path = m_path});
    }

    const Json& json() const { return m_json; }

    int size(const char* name, int otherwise = 0) const {
        const Json value = m_json.value(name, Json());
        if (value.is_null()) return otherwise;
        if (!value.is_number_integer() || value.get<std::int64_t>() <= 0 || value.get<std::int64_t>() > kLargestSize)
            fail("the field is no size of a model", name);
        return value.get<int>();
    }

    static double number(const Json& object, const char* name, double otherwise) {
        const Json value = object.is_object() ? object.value(name, Json()) : Json();
        return value.is_number() ? value.get<double>() : otherwise;
    }
    static std::string text(const Json& object, const char* name) {
        const Json value = object.is_object() ? object.value(name, Json()) : Json();
        return value.is_string() ? value.get<std::string>() : "";
    }

private:
    std::string m_path;
    Json m_json;
};

/// Long wavelengths are stretched, short ones stay, those between are interpolated (Llama 3.1).
double llama3Frequency(double frequency, const Json& rope) {
    const double factor = ConfigReader::number(rope, "factor", 8),
                 low = ConfigReader::number(rope, "low_freq_factor", 1);
    const double high = ConfigReader::number(rope, "high_freq_factor", 4);
    const double trained = ConfigReader::number(rope, "original_max_position_embeddings", 8192);
    const double turns = trained * frequency / (2 * std::numbers::pi); // in the trained length
    if (turns < low) return frequency / factor;
    if (turns > high) return frequency;
    const double smooth = (turns - low) / (high - low);
    return (1 - smooth) * frequency / factor + smooth * frequency;
}

void readRope(const ConfigReader& reader, ModelConfig& config) {
    const Json& json = reader.json();
    Json rope = json.value("rope_parameters", Json());
    if (!rope.is_object()) rope = json.value("rope_scaling", Json());
    double theta = ConfigReader::number(rope, "rope_theta", ConfigReader::number(json, "rope_theta", 0));
    const double partial =
        ConfigReader::number(rope, "partial_rotary_factor", ConfigReader::number(json, "partial_rotary_factor", 1));
    const bool byLayerType =
        rope.is_object() && (rope.contains("full_attention") || rope.contains("sliding_attention"));
    config.rotates = theta > 0 || byLayerType;
    if (!config.rotates) return;
    std::string type = ConfigReader::text(rope, "rope_type");
    if (type.empty()) type = ConfigReader::text(rope, "type");
    config.rope.type = type.empty() ? "default" : type;
    config.rope.theta = theta;
    config.rope.rotaryDim = static_cast<int>(config.headDim * partial) / 2 * 2;
    const bool known = config.rope.type == "default" || config.rope.type == "linear" || config.rope.type == "llama3";
    if (!known || byLayerType || !(theta > 0) || config.rope.rotaryDim <= 0 || json.contains("rope_local_base_freq"))
        return;
    const double factor = config.rope.type == "linear" ? ConfigReader::number(rope, "factor", 1) : 1;
    for (int i = 0; i < config.rope.rotaryDim; i += 2) {
        const double frequency = std::pow(theta, -static_cast<double>(i) / config.rope.rotaryDim) / factor;
        config.inverseFrequencies.push_back(
            static_cast<float>(config.rope.type == "llama3" ? llama3Frequency(frequency, rope) : frequency));
    }
}

} // namespace

std::string ModelConfig::layerType(int layer) const {
    const auto index = static_cast<std::size_t>(layer);
    return index < layerTypes.size() ? layerTypes[index] : "full_attention";
}

bool ModelConfig::slides(int layer) const {
    return slidingWindow > 0 && (layerTypes.empty() || layerType(layer) == "sliding_attention");
}

ModelConfig readModelConfig(const std::string& path) {
    const ConfigReader reader(path);
    const Json& json = reader.json();
    ModelConfig config;
    config.modelId = ConfigReader::text(json, "_name_or_path");
    config.numLayers = reader.size("num_hidden_layers");
    config.numQueryHeads = reader.size("num_attention_heads");
    if (config.numQueryHeads == 0) reader.fail("the field is missing", "num_attention_heads");
    config.numKvHeads = reader.size("num_key_value_heads", config.numQueryHeads);
    config.headDim = reader.size("head_dim", reader.size("hidden_size") / config.numQueryHeads);
    if (config.headDim == 0 || config.numQueryHeads % config.numKvHeads != 0)
        reader.fail("head_dim, hidden_size and the numbers of heads do not fit together", "num_key_value_heads");
    const double base = ConfigReader::number(json, "query_pre_attn_scalar", config.headDim);
    config.scaling = base > 0 ? 1 / std::sqrt(base) : 0;
    config.softcap = std::max(0.0, ConfigReader::number(json, "attn_logit_softcapping", 0));
    const bool window = !json.contains("use_sliding_window") || json.value("use_sliding_window", Json()) != Json(false);
    config.slidingWindow =
        window ? static_cast<std::int64_t>(std::clamp(ConfigReader::number(json, "sliding_window", 0), 0.0, 1e9)) : 0;
    for (const Json& type : json.value("layer_types", Json::array()))
        config.layerTypes.push_back(type.is_string() ? type.get<std::string>() : "");
    readRope(reader, config);
    return config;
}

} // namespace kvscope
