// JSON between text and values.
#include "core/base/json/json_text.h"

#include "core/base/atomic_file.h"
#include "core/base/error.h"

#include <nlohmann/json.hpp>

namespace kvscope {

void checkNesting(std::string_view json, const std::string& path) {
    constexpr int kDeepest = 100;
    int depth = 0;
    bool inText = false;
    for (std::size_t i = 0; i < json.size(); ++i) {
        const char c = json[i];
        if (inText)
            i += c == '\\' ? 1 : 0;
        else if (c == '[' || c == '{')
            ++depth;
        else if (c == ']' || c == '}')
            --depth;
        if (c == '"') inText = !inText;
        if (depth > kDeepest)
            throw Error({"the JSON is nested too deep", "byte " + std::to_string(i), "Write the file again", path});
    }
}

std::string readJsonText(const std::string& path, std::size_t maxBytes) {
    std::string text = readWholeFile(path, maxBytes);
    checkNesting(text, path);
    return text;
}

nlohmann::json parsedJson(std::string_view text) { return nlohmann::json::parse(text, nullptr, false); }

nlohmann::ordered_json parsedOrderedJson(std::string_view text) {
    return nlohmann::ordered_json::parse(text, nullptr, false);
}

nlohmann::ordered_json ownJson(std::string_view text) { return nlohmann::ordered_json::parse(text); }

std::string jsonLine(const nlohmann::json& json) {
    return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string jsonLine(const nlohmann::ordered_json& json) { return jsonLines(json, -1); }

std::string jsonLines(const nlohmann::ordered_json& json, int indent) {
    return json.dump(indent, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

} // namespace kvscope
