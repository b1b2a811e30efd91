// config.json as it lies on the Hugging Face Hub. Defaults, old names and patterns of layers are conventions of each
// model type; the types of the table are compared with Transformers in resources/python/tests/test_describe.py, all
// others, and fields beyond what is read here, are left to kvscope-describe.
#include "core/capture/import/model_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numbers>

namespace kvscope {

namespace {

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

} // namespace

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
    model.layers.assign(static_cast<std::size_t>(config.size("num_hidden_layers")), layer);
    if (config.has("layer_types"))
        for (const auto& entry : config.list("layer_types"))
            if (entry != layer.attentionType)
                config.fail("which layers have the window is not known here", "layer_types");
    return model;
}

} // namespace kvscope
