// The JSON form of a retained-index list: the metadata first, then one line per head.
#include "core/lists/selection_formats.h"

#include "core/base/error.h"
#include "core/base/json/json_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <initializer_list>
#include <limits>
#include <utility>

namespace kvscope {

namespace {

using Json = nlohmann::ordered_json;

// A float is written with the digits that identify it among floats ("0.1"), not among doubles.
Json floatJson(float value) {
    const double digits = parseNumber<double>(shortest(value)).value_or(value);
    return static_cast<float>(digits) == value ? digits : static_cast<double>(value);
}

Json floatsJson(const std::vector<float>& values) {
    Json list = Json::array();
    for (const float value : values) list.push_back(floatJson(value));
    return list;
}

/// Without a point where it is whole and small enough to be exact.
Json numberJson(double value) {
    const bool whole = std::abs(value) <= 0x1p53 && value == std::trunc(value);
    return whole ? Json(static_cast<std::int64_t>(value)) : Json(value);
}

/// A text that is a number or a truth value becomes one, if it reads back to the same text: "32" is 32, "2048t" a text.
Json typedJson(const std::string& text) {
    Json json = parsedOrderedJson(text);
    return (json.is_number() || json.is_boolean()) && jsonLine(json) == text ? json : Json(text);
}

/// "kept" is null here; headText fills it in. A margin that is not finite, where nothing was decided, is written as
/// null.
Json headJson(const RecordedHead& head) {
    Json json;
    json["layer"] = head.layer;
    json["kv_head"] = head.kvHead;
    json["kept"] = nullptr;
    for (const RecordedQueryHead& own : head.queryHeads) {
        Json& set = json["query_heads"].emplace_back();
        set["query_head"] = own.queryHead;
        set["kept"] = own.kept;
        if (!own.scores.empty()) set["scores"] = floatsJson(own.scores);
        set["margin"] = own.margin;
    }
    if (!head.numeratorWeights.empty()) json["weights"]["numerator"] = floatsJson(head.numeratorWeights);
    if (!head.denominatorWeights.empty()) json["weights"]["denominator"] = floatsJson(head.denominatorWeights);
    if (!head.scores.empty()) json["scores"] = floatsJson(head.scores);
    if (head.storedKeys >= 0) json["stored"]["keys"] = head.storedKeys;
    if (head.storedValues >= 0) json["stored"]["values"] = head.storedValues;
    json["margin"] = head.margin;
    return json;
}

Json metadataJson(const RecordedSelection& s) {
    Json json;
    json["format"] = kSelectionFormat;
    json["version"] = kSelectionVersion;
    const auto write = [](Json& target, const auto& value) {
        if constexpr (std::is_same_v<std::decay_t<decltype(value)>, double>)
            target = numberJson(value);
        else
            target = value;
    };
    for (const SelectionField& field : selectionFields()) {
        if (field.group == "budget" && !json.contains("parameters")) { // parameters stand before the budget
            json["parameters"] = Json::object();
            for (const auto& [id, value] : s.parameters) json["parameters"][id] = typedJson(value);
        }
        if ((field.name == "origin" && s.budgetOrigin.empty()) || field.isAbsent(s)) continue;
        Json& object = field.group.empty() ? json : json[std::string(field.group)];
        std::visit([&](auto member) { write(object[std::string(field.name)], s.*member); }, field.member);
        if (field.key() == "budget_requested") object["requested"] = typedJson(s.budgetRequested);
    }
    return json;
}

/// Writes "kept" by itself: a JSON value for each of millions of tokens would take longer than all other writing.
std::string headText(const RecordedHead& head) {
    std::string text = jsonLine(headJson(head));
    return text.replace(text.find("null"), 4, fmt::format("[{}]", fmt::join(head.kept, ",")));
}

/// Reads fields of an object; its Errors name the place of a field that does not fit.
class Reader {
public:
    Reader(const Json& json, std::string place, std::string path)
        : m_json(json), m_place(std::move(place)), m_path(std::move(path)) {
        if (!json.is_object()) throw Error({"this is not a JSON object", m_place, "", m_path});
    }

    /// Null where the key is missing or null.
    const Json* find(const std::string& key) const {
        const auto at = m_json.find(key);
        return at == m_json.end() || at->is_null() ? nullptr : &*at;
    }
    void require(std::initializer_list<const char*> keys) const {
        for (const char* key : keys)
            if (!find(key)) refuse(key);
    }
    Reader object(const std::string& key) const {
        static const Json none = Json::object();
        const Json* json = find(key);
        return Reader(json ? *json : none, placeOf(key), m_path);
    }
    std::vector<Reader> objects(const std::string& key) const {
        std::vector<Reader> readers;
        const Json& list = listOf(key);
        for (std::size_t i = 0; i < list.size(); ++i)
            readers.emplace_back(list[i], placeOf(key) + "[" + std::to_string(i) + "]", m_path);
        return readers;
    }
    /// Leaves `target` as it is when the key is missing.
    template <class T> void read(const std::string& key, T& target) const {
        if (const Json* json = find(key)) target = valueOf<T>(*json, key);
    }
    template <class T> void readList(const std::string& key, std::vector<T>& target) const {
        for (const Json& item : listOf(key)) target.push_back(valueOf<T>(item, key));
    }
    const Json& json() const { return m_json; }
    const std::string& path() const { return m_path; }

private:
    std::string placeOf(const std::string& key) const { return m_place.empty() ? key : m_place + "." + key; }
    [[noreturn]] void refuse(const std::string& key) const {
        throw Error({"a value is missing or has the wrong type or range", placeOf(key), "", m_path});
    }
    const Json& listOf(const std::string& key) const {
        static const Json none = Json::array();
        const Json* json = find(key);
        if (json && !json->is_array()) refuse(key);
        return json ? *json : none;
    }
    template <class T> T valueOf(const Json& json, const std::string& key) const {
        if constexpr (std::is_same_v<T, std::string>) {
            return json.is_string() ? json.get<std::string>() : jsonLine(json); // "requested": 0.25 equals "0.25"
        } else if constexpr (std::is_same_v<T, bool>) {
            if (!json.is_boolean()) refuse(key);
            return json.get<bool>();
        } else if constexpr (std::is_floating_point_v<T>) {
            if (json.is_null()) return std::numeric_limits<T>::quiet_NaN();
            if (!json.is_number()) refuse(key);
            return static_cast<T>(json.get<double>());
        } else {
            const auto value = json.is_number_integer() ? parseNumber<T>(jsonLine(json)) : std::nullopt;
            if (!value) refuse(key);
            return *value;
        }
    }
    const Json& m_json;
    std::string m_place, m_path;
};

std::vector<RecordedQueryHead> parseQueryHeads(const Reader& head) {
    std::vector<RecordedQueryHead> sets;
    for (const Reader& reader : head.objects("query_heads")) {
        RecordedQueryHead own{{0, {}, std::numeric_limits<float>::infinity()}};
        reader.require({"query_head", "kept"});
        reader.read("query_head", own.queryHead);
        reader.readList("kept", own.kept);
        reader.readList("scores", own.scores);
        reader.read("margin", own.margin);
        sets.push_back(std::move(own));
    }
    return sets;
}

RecordedHead parseHead(const Reader& reader) {
    RecordedHead head;
    reader.require({"layer", "kv_head", "kept"});
    reader.read("layer", head.layer);
    reader.read("kv_head", head.kvHead);
    reader.readList("kept", head.kept);
    const Reader weights = reader.object("weights");
    weights.readList("numerator", head.numeratorWeights);
    weights.readList("denominator", head.denominatorWeights);
    reader.object("stored").read("keys", head.storedKeys);
    reader.object("stored").read("values", head.storedValues);
    reader.readList("scores", head.scores);
    reader.read("margin", head.margin); // null: nothing was decided
    head.queryHeads = parseQueryHeads(reader);
    return head;
}

void parseMetadata(const Reader& root, RecordedSelection& s) {
    std::string format = "an unknown format", version = "unknown";
    root.read("format", format);
    root.read("version", version);
    checkFormat(format, version, root.path());
    for (const SelectionField& field : selectionFields()) {
        const Reader object = field.group.empty() ? root : root.object(std::string(field.group));
        std::visit([&](auto member) { object.read(std::string(field.name), s.*member); }, field.member);
    }
    const Reader parameters = root.object("parameters");
    for (const auto& [id, value] : parameters.json().items())
        parameters.read(id, s.parameters.emplace_back(id, std::string()).second);
}

} // namespace

std::string selectionJson(const RecordedSelection& selection) {
    std::string text = "{\n";
    const Json metadata = metadataJson(selection);
    for (const auto& [key, value] : metadata.items())
        text += "  " + jsonLine(Json(key)) + ": " + jsonLine(value) + ",\n";
    text += "  \"heads\": [";
    for (const RecordedHead& head : selection.heads)
        text += (&head == &selection.heads.front() ? "\n    " : ",\n    ") + headText(head);
    return text + "\n  ]\n}\n";
}

RecordedSelection parseSelectionJson(const std::string& text, const std::string& path) {
    const Json json = parsedOrderedJson(text);
    if (json.is_discarded()) throw Error({"the file is not valid JSON", "", "Write the list again", path});
    const Reader root(json, {}, path);
    RecordedSelection selection;
    parseMetadata(root, selection);
    root.require({"heads"});
    for (const Reader& head : root.objects("heads")) selection.heads.push_back(parseHead(head));
    tidyHeads(selection, path);
    return selection;
}

} // namespace kvscope
