// Tokens from a JSON file beside the tensors, or numbered tokens without one.
#include "core/capture/import/token_list.h"

#include "core/base/error.h"
#include "core/base/json/json_text.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <numeric>

namespace kvscope {

namespace {

using Json = nlohmann::json;

constexpr std::size_t kLargestList = std::size_t{1} << 30;

[[noreturn]] void fail(const std::string& path, std::string sentence, std::string list) {
    throw Error({std::move(sentence), std::move(list),
                 R"(Write {"ids": [...], "texts": [...], "segments": [[begin, end, "context"], ...]})", path});
}

const Json& listOf(const Json& json, const char* name, std::int64_t tokens, const std::string& path) {
    const Json& list = json[name];
    if (!list.is_array() || static_cast<std::int64_t>(list.size()) != tokens)
        fail(path, fmt::format("the list has {} entries, the tensors have {} tokens", list.size(), tokens), name);
    return list;
}

template <class Number> std::vector<Number> numbersOf(const Json& list, const char* name, const std::string& path) {
    std::vector<Number> numbers;
    for (const Json& entry : list) {
        if (!entry.is_number_integer() || entry.get<std::int64_t>() < 0 ||
            entry.get<std::int64_t>() > std::numeric_limits<std::int32_t>::max())
            fail(path, fmt::format("entry {} is no whole number", numbers.size()), name);
        numbers.push_back(entry.get<Number>());
    }
    return numbers;
}

void takeTexts(TokenTable& tokens, const Json& list, const std::string& path) {
    tokens.bytes.clear();
    tokens.offsets.assign(1, 0);
    for (const Json& entry : list) {
        if (!entry.is_string()) fail(path, fmt::format("entry {} is no text", tokens.offsets.size() - 1), "texts");
        tokens.bytes += entry.get_ref<const std::string&>();
        tokens.offsets.push_back(static_cast<std::int64_t>(tokens.bytes.size()));
    }
}

Segment segmentOf(const Json& row, std::int64_t tokens, const std::string& path) {
    if (!row.is_array() || row.size() != 3 || !row[0].is_number_integer() || !row[1].is_number_integer() ||
        !row[2].is_string())
        fail(path, "a segment is not [begin, end, kind]", "segments");
    const auto begin = row[0].get<std::int64_t>(), end = row[1].get<std::int64_t>();
    if (begin < 0 || end <= begin || end > tokens)
        fail(path, fmt::format("segment {} to {} lies outside the {} tokens", begin, end, tokens), "segments");
    const auto name = row[2].get<std::string>();
    const auto kind = segmentKindNamed(name);
    if (!kind) fail(path, "'" + name + "' is no kind of segment", "segments");
    return {static_cast<TokenIndex>(begin), static_cast<TokenIndex>(end), *kind};
}

} // namespace

TokenTable numberedTokens(std::int64_t tokens) {
    TokenTable table;
    table.ids.resize(static_cast<std::size_t>(tokens));
    table.positions.resize(static_cast<std::size_t>(tokens));
    std::iota(table.ids.begin(), table.ids.end(), 0);
    std::iota(table.positions.begin(), table.positions.end(), std::int64_t{0});
    nameByIds(table);
    return table;
}

void nameByIds(TokenTable& tokens) {
    tokens.bytes.clear();
    tokens.offsets.assign(1, 0);
    for (const std::int32_t id : tokens.ids) {
        tokens.bytes += fmt::format(" #{}", id);
        tokens.offsets.push_back(static_cast<std::int64_t>(tokens.bytes.size()));
    }
}

TokenTable readTokenList(const std::string& path, const TokenTable& known) {
    const Json json = parsedJson(readJsonText(path, kLargestList));
    if (!json.is_object() || !json.contains("ids"))
        fail(path, "the file is not a JSON object with a list of ids", "ids");
    TokenTable table = known;
    const auto tokens = static_cast<std::int64_t>(known.ids.size());
    table.ids = numbersOf<std::int32_t>(listOf(json, "ids", tokens, path), "ids", path);
    if (json.contains("position_ids"))
        table.positions = numbersOf<std::int64_t>(listOf(json, "position_ids", tokens, path), "position_ids", path);
    nameByIds(table);
    if (json.contains("texts")) takeTexts(table, listOf(json, "texts", tokens, path), path);
    if (!json.contains("segments")) return table;
    if (!json["segments"].is_array()) fail(path, "the segments are no list", "segments");
    for (const Json& row : json["segments"]) table.segments.push_back(segmentOf(row, tokens, path));
    return table;
}

} // namespace kvscope
