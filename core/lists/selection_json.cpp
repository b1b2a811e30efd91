// The JSON form of a retained-index list: the metadata first, then one line per head.
#include "core/lists/selection_formats.h"

#include "core/base/error.h"

#include <nlohmann/json.hpp>

#include <charconv>
#include <cmath>
#include <limits>

namespace kvscope {

namespace {

using Json = nlohmann::ordered_json;

// A float is written with the digits that identify it among floats ("0.1"), not among doubles.
Json floatJson(float value) {
    if (!std::isfinite(value))
        return nullptr;
    const std::string text = shortest(value);
    double digits = 0;
    std::from_chars(text.data(), text.data() + text.size(), digits);
    return static_cast<float>(digits) == value ? digits : static_cast<double>(value);
}

Json floatsJson(const std::vector<float>& values) {
    Json list = Json::array();
    for (const float value : values)
        list.push_back(floatJson(value));
    return list;
}

/// Without a point where it is whole.
Json numberJson(double value) {
    const auto whole = static_cast<std::int64_t>(value);
    return static_cast<double>(whole) == value ? Json(whole) : Json(value);
}

/// null: nothing was decided.
Json marginJson(double margin) { return std::isfinite(margin) ? Json(margin) : Json(nullptr); }

Json headJson(const RecordedHead& head) {
    Json json;
    json["layer"] = head.layer;
    json["kv_head"] = head.kvHead;
    json["kept"] = head.kept;
    for (const RecordedQueryHead& own : head.queryHeads) {
        Json& set = json["query_heads"].emplace_back();
        set["query_head"] = own.queryHead;
        set["kept"] = own.kept;
        if (!own.scores.empty())
            set["scores"] = floatsJson(own.scores);
        set["margin"] = marginJson(own.margin);
    }
    if (!head.numeratorWeights.empty())
        json["weights"]["numerator"] = floatsJson(head.numeratorWeights);
    if (!head.denominatorWeights.empty())
        json["weights"]["denominator"] = floatsJson(head.denominatorWeights);
    if (!head.scores.empty())
        json["scores"] = floatsJson(head.scores);
    if (head.storedKeys >= 0)
        json["stored"]["keys"] = head.storedKeys;
    if (head.storedValues >= 0)
        json["stored"]["values"] = head.storedValues;
    json["margin"] = marginJson(head.margin);
    return json;
}

Json metadataJson(const RecordedSelection& s) {
    Json json;
    json["format"] = kSelectionFormat;
    json["version"] = kSelectionVersion;
    json["capture"] = {{"file", s.captureFile}, {"hash", s.captureHash}, {"tokens", s.captureTokens}};
    json["cut"] = s.cut;
    json["cut_token"] = s.cutToken;
    json["policy"] = s.policy;
    json["variant"] = s.variant;
    json["parameters"] = Json::object();
    for (const auto& [id, value] : s.parameters)
        json["parameters"][id] = value;
    json["budget"] = {
        {"requested", s.budgetRequested}, {"requested_tokens", s.budgetTokens}, {"kept", numberJson(s.budgetKept)}};
    if (!s.budgetOrigin.empty())
        json["budget"]["origin"] = s.budgetOrigin;
    json["seed"] = s.seed;
    json["engine"] = s.engine;
    json["arithmetic"] = s.arithmetic;
    json["simulated"] = s.simulated;
    json["command"] = s.command;
    return json;
}

// File names need not be UTF-8; what is not becomes the replacement character.
std::string dumped(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

/// Reads fields of an object and names the place of what does not fit.
class Reader {
public:
    Reader(const Json& json, std::string place, std::string path)
        : m_json(json), m_place(std::move(place)), m_path(std::move(path)) {
        if (!json.is_object())
            throw Error({"this is not a JSON object", m_place, {}, m_path});
    }

    const Json* find(const char* key) const {
        const auto at = m_json.find(key);
        return at == m_json.end() || at->is_null() ? nullptr : &*at;
    }
    Reader object(const char* key) const {
        static const Json none = Json::object();
        const Json* json = find(key);
        return Reader(json ? *json : none, placeOf(key), m_path);
    }
    /// Leaves `target` as it is when the key is missing.
    template <class T> void read(const char* key, T& target) const {
        if (const Json* json = find(key))
            target = valueOf<T>(*json, key);
    }
    template <class T> void readList(const char* key, std::vector<T>& target) const {
        const Json* json = find(key);
        if (!json)
            return;
        if (!json->is_array())
            refuse(key);
        target.reserve(json->size());
        for (const Json& item : *json)
            target.push_back(valueOf<T>(item, key));
    }
    const Json& json() const { return m_json; }
    const std::string& path() const { return m_path; }
    std::string placeOf(const char* key) const { return m_place.empty() ? key : m_place + "." + key; }
    [[noreturn]] void refuse(const char* key) const {
        throw Error({"a value is missing or has the wrong type or range", placeOf(key), {}, m_path});
    }

private:
    template <class T> T valueOf(const Json& json, const char* key) const {
        if constexpr (std::is_same_v<T, std::string>) {
            return json.is_string() ? json.get<std::string>() : json.dump(); // "budget": 0.25 is as good as "0.25"
        } else if constexpr (std::is_same_v<T, bool>) {
            if (!json.is_boolean())
                refuse(key);
            return json.get<bool>();
        } else if constexpr (std::is_floating_point_v<T>) {
            if (json.is_null())
                return std::numeric_limits<T>::quiet_NaN();
            if (!json.is_number())
                refuse(key);
            return static_cast<T>(json.get<double>());
        } else {
            const bool fits = json.is_number_unsigned()
                                  ? std::in_range<T>(json.get<std::uint64_t>())
                                  : json.is_number_integer() && std::in_range<T>(json.get<std::int64_t>());
            if (!fits)
                refuse(key);
            return json.get<T>();
        }
    }
    const Json& m_json;
    std::string m_place, m_path;
};

std::vector<RecordedQueryHead> parseQueryHeads(const Reader& head) {
    std::vector<RecordedQueryHead> sets;
    const Json* list = head.find("query_heads");
    if (list && !list->is_array())
        head.refuse("query_heads");
    for (std::size_t i = 0; list && i < list->size(); ++i) {
        const Reader reader((*list)[i], head.placeOf("query_heads") + "[" + std::to_string(i) + "]", head.path());
        RecordedQueryHead own{{0, {}, std::numeric_limits<float>::infinity()}};
        for (const char* key : {"query_head", "kept"})
            if (!reader.find(key))
                reader.refuse(key);
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
    for (const char* key : {"layer", "kv_head", "kept"})
        if (!reader.find(key))
            reader.refuse(key);
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
    root.object("capture").read("file", s.captureFile);
    root.object("capture").read("hash", s.captureHash);
    root.object("capture").read("tokens", s.captureTokens);
    root.read("cut", s.cut);
    root.read("cut_token", s.cutToken);
    root.read("policy", s.policy);
    root.read("variant", s.variant);
    const Reader parameters = root.object("parameters");
    for (const auto& [id, value] : parameters.json().items())
        parameters.read(id.c_str(), s.parameters.emplace_back(id, std::string()).second);
    root.object("budget").read("requested", s.budgetRequested);
    root.object("budget").read("requested_tokens", s.budgetTokens);
    root.object("budget").read("kept", s.budgetKept);
    root.object("budget").read("origin", s.budgetOrigin);
    root.read("seed", s.seed);
    root.read("engine", s.engine);
    root.read("arithmetic", s.arithmetic);
    root.read("simulated", s.simulated);
    root.read("command", s.command);
}

void checkFormat(const Reader& root, const std::string& path) {
    RecordedSelection ignored;
    std::string format = "an unknown format", version = "unknown";
    root.read("format", format);
    root.read("version", version);
    setSelectionField(ignored, {"format", format}, path);
    setSelectionField(ignored, {"version", version}, path);
}

} // namespace

std::string selectionJson(const RecordedSelection& selection) {
    std::string text = "{\n";
    const Json metadata = metadataJson(selection);
    for (const auto& [key, value] : metadata.items())
        text += "  " + dumped(key) + ": " + dumped(value) + ",\n";
    text += "  \"heads\": [";
    for (const RecordedHead& head : selection.heads)
        text += (&head == &selection.heads.front() ? "\n    " : ",\n    ") + dumped(headJson(head));
    return text + "\n  ]\n}\n";
}

RecordedSelection parseSelectionJson(const std::string& text, const std::string& path) {
    const Json json = Json::parse(text, nullptr, false);
    if (json.is_discarded())
        throw Error({"the file is not valid JSON", {}, "Write the list again", path});
    const Reader root(json, {}, path);
    checkFormat(root, path);
    RecordedSelection selection;
    parseMetadata(root, selection);
    const Json* heads = root.find("heads");
    if (!heads || !heads->is_array())
        root.refuse("heads");
    for (std::size_t i = 0; i < heads->size(); ++i)
        selection.heads.push_back(parseHead(Reader((*heads)[i], "heads[" + std::to_string(i) + "]", path)));
    tidyHeads(selection, path);
    return selection;
}

} // namespace kvscope
