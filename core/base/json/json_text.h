#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstddef>
#include <string>
#include <string_view>

namespace kvscope {

/// Throws Error where the brackets of a JSON text are nested more than 100 deep, which no file of ours is:
/// nlohmann-json copies and writes values recursively, so that deeper nesting could overflow the stack.
void checkNesting(std::string_view json, const std::string& path);

/// readWholeFile, then checkNesting.
std::string readJsonText(const std::string& path, std::size_t maxBytes = std::size_t{1} << 30);

// Sources call nlohmann-json's parser and writer through these functions, because compiling them takes seconds.

/// Discarded (is_discarded()) for a text that is no JSON.
nlohmann::json parsedJson(std::string_view text);
nlohmann::ordered_json parsedOrderedJson(std::string_view text);
/// For a text that the program wrote itself. Throws nlohmann::json::parse_error if it is no JSON.
nlohmann::ordered_json ownJson(std::string_view text);

/// JSON text on one line, or on many. Bytes that are not UTF-8 become U+FFFD, numbers that are not finite become null.
std::string jsonLine(const nlohmann::json& json);
std::string jsonLine(const nlohmann::ordered_json& json);
std::string jsonLines(const nlohmann::ordered_json& json, int indent);

} // namespace kvscope
