// Finds a tensor's role and layer from its name. The table holds the words that programs use for keys, values and
// queries; the layer's number stands before or after the word.
#include "core/capture/import/tensor_names.h"

#include "core/base/error.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <regex>

namespace kvscope {

namespace {

constexpr std::size_t kLongestName = 400; // std::regex matches recursively

struct RoleWords {
    ImportRole role;
    const char* name;  ///< in templates
    const char* words; ///< alternatives of a regular expression
};

constexpr RoleWords kTable[] = {
    {ImportRole::Keys, "k", "k|key|keys|key_states|key_cache|k_cache"},
    {ImportRole::Values, "v", "v|value|values|value_states|value_cache|v_cache"},
    {ImportRole::Queries, "q", "q|query|queries|query_states|q_window"},
    {ImportRole::KeysPreRope, "k_pre", "k_pre|keys_pre_rope"},
    {ImportRole::KeysAndValues, "kv", "kv|kv_cache"},
    {ImportRole::Sinks, "sinks", "sinks|s_aux"},
};

struct Pattern {
    ImportRole role;
    std::regex expression; ///< its first group is the layer
};

std::regex compile(const std::string& text) { return std::regex(text, std::regex::ECMAScript | std::regex::icase); }

std::vector<Pattern> tablePatterns() {
    const std::string front = "(?:.*[^A-Za-z])?", number = "([0-9]{1,4})";
    std::vector<Pattern> patterns;
    for (const RoleWords& row : kTable) {
        const std::string words = fmt::format("(?:{})", row.words);
        patterns.push_back({row.role, compile("(?:.*[^0-9])?" + number + "[._/-]" + words)});
        patterns.push_back({row.role, compile(front + words + "[._/-]?" + number)});
    }
    // model.layers.3.self_attn.attn.kv_cache: in vLLM's names, and in a model's weights, the number is not next to the
    // word
    patterns.push_back({ImportRole::KeysAndValues, compile(front + "layers?[._/-]" + number + "[._/-].*kv_cache")});
    patterns.push_back({ImportRole::Sinks, compile(front + "layers?[._/-]" + number + "[._/-].*sinks")});
    return patterns;
}

std::regex compileTemplate(const std::string& text) {
    std::string expression;
    for (std::size_t i = 0; i < text.size();) {
        if (text.compare(i, 7, "{layer}") == 0) {
            expression += "([0-9]{1,4})";
            i += 7;
            continue;
        }
        if (text[i] == '*')
            expression += i == 0 ? "(?:.*[^A-Za-z])?" : ".*";
        else if (std::isalnum(static_cast<unsigned char>(text[i])) || text[i] == '_')
            expression += text[i];
        else
            expression += std::string("\\") + text[i];
        ++i;
    }
    return compile(expression);
}

std::optional<int> layerOf(const std::string& name, const std::regex& expression) {
    std::smatch match;
    if (name.size() > kLongestName || !std::regex_match(name, match, expression)) return std::nullopt;
    const std::string digits = match[1].str();
    int layer = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), layer);
    return layer;
}

bool isNamed(const ArchiveTensor& tensor, std::initializer_list<const char*> names) {
    return std::ranges::any_of(names, [&](const char* name) { return tensor.name == name; });
}

void place(NamedTensors& named, const ArchiveTensor& tensor, const std::vector<Pattern>& patterns) {
    for (const Pattern& pattern : patterns) {
        const auto layer = layerOf(tensor.matched, pattern.expression);
        if (!layer) continue;
        const auto [there, fresh] = named.layers[*layer].try_emplace(pattern.role, &tensor);
        if (!fresh)
            refuseTensor(tensor,
                         fmt::format("tensors {} and {} are both the {} of layer {} by their names",
                                     there->second->matched, tensor.matched, importRoleName(pattern.role), *layer),
                         fmt::format("Say which one: --pattern '{}=...{{layer}}...'", importRoleName(pattern.role)));
        return;
    }
    if (isNamed(tensor, {"token_ids", "input_ids"})) named.tokenIds = &tensor;
    if (isNamed(tensor, {"position_ids", "positions"})) named.positions = &tensor;
}

[[noreturn]] void refuseAll(const TensorArchive& archive, const std::string& path) {
    constexpr std::size_t kShown = 4;
    std::vector<std::string> names;
    bool weights = false;
    for (const ArchiveTensor& tensor : archive.tensors()) {
        weights = weights || tensor.name.ends_with("k_proj.weight") || tensor.name.ends_with("qkv_proj.weight");
        if (names.size() < kShown) names.push_back(tensor.name);
    }
    if (weights)
        throw Error({"these are a model's weights, not what its attention saw", "",
                     "Run a prompt through the model: kvscope-capture MODEL --text FILE --out FILE.h5", path});
    throw Error({archive.tensors().empty() ? "there are no tensors in it"
                                           : "no tensor is named like the keys and values of a layer",
                 archive.tensors().empty() ? "" : fmt::format("there are {}", fmt::join(names, ", ")),
                 "Name them with --pattern 'k=...{layer}...' --pattern 'v=...{layer}...' of kvscope convert", path});
}

/// A layer needs both keys and values; other tensors alone do not make a layer.
void checkLayers(NamedTensors& named) {
    for (auto& [layer, tensors] : named.layers) {
        const bool both = tensors.contains(ImportRole::KeysAndValues);
        const auto keys = tensors.find(ImportRole::Keys), values = tensors.find(ImportRole::Values);
        const bool hasKeys = keys != tensors.end(), hasValues = values != tensors.end();
        if (both ? hasKeys || hasValues : hasKeys != hasValues)
            refuseTensor(*tensors.begin()->second,
                         both ? fmt::format("layer {} has keys and values twice, together and apart", layer)
                              : fmt::format("layer {} has {} but no {}", layer, hasKeys ? "keys" : "values",
                                            hasKeys ? "values" : "keys"),
                         "Save both, or name them with --pattern of kvscope convert");
    }
    std::erase_if(named.layers, [](const auto& entry) {
        return !entry.second.contains(ImportRole::Keys) && !entry.second.contains(ImportRole::KeysAndValues);
    });
}

} // namespace

std::string_view importRoleName(ImportRole role) {
    for (const RoleWords& row : kTable)
        if (row.role == role) return row.name;
    return {};
}

NameTemplate NameTemplate::parse(const std::string& text) {
    const std::size_t equals = text.find('=');
    const std::string role = text.substr(0, std::min(equals, text.size()));
    const std::string pattern = equals == text.npos ? "" : text.substr(equals + 1);
    for (const RoleWords& row : kTable)
        if (role == row.name && pattern.find("{layer}") == pattern.rfind("{layer}") &&
            pattern.find("{layer}") != pattern.npos && pattern.size() <= kLongestName)
            return {row.role, pattern};
    throw Error({"'" + text + "' is no name template", "--pattern",
                 "Write ROLE=NAME with {layer} once in NAME, like k=blocks.{layer}.key; ROLE is k, v, q, "
                 "k_pre, kv or sinks"});
}

NamedTensors nameTensors(const TensorArchive& archive, const std::string& path,
                         std::span<const NameTemplate> templates) {
    std::vector<Pattern> patterns;
    for (const NameTemplate& own : templates) patterns.push_back({own.role, compileTemplate(own.text)});
    for (Pattern& row : tablePatterns()) {
        const bool replaced =
            std::ranges::any_of(templates, [&](const NameTemplate& own) { return own.role == row.role; });
        if (!replaced) patterns.push_back(std::move(row));
    }
    NamedTensors named;
    for (const ArchiveTensor& tensor : archive.tensors()) place(named, tensor, patterns);
    checkLayers(named);
    if (named.layers.empty()) refuseAll(archive, path);
    return named;
}

} // namespace kvscope
