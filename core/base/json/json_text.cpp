// JSON of others before it is parsed.
#include "core/base/json_text.h"

#include "core/base/atomic_file.h"
#include "core/base/error.h"

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

} // namespace kvscope
