// A session file lists the members of Session by name. Known keys are strict (a wrong value is an error with the key as
// its place), unknown keys are kept and written back.
#include "app/study/session_file.h"

#include "app/live/live_context.h"
#include "app/study/live_cut.h"
#include "app/study/object_reader.h"
#include "app/study/session_paths.h"
#include "core/base/atomic_file.h"
#include "core/base/error.h"
#include "core/base/json/json_text.h"
#include "views/common/measure_options.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>

namespace kvscope {

namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

constexpr const char* kFormat = "kvscope-session";

template <class Enum> struct Word {
    Enum value;
    const char* word;
};
constexpr Word<WindowLayout> kLayouts[] = {{WindowLayout::ExploreHead, "explore_head"},
                                           {WindowLayout::ComparePolicies, "compare_policies"},
                                           {WindowLayout::Teach, "teach"},
                                           {WindowLayout::WholeModel, "whole_model"}};
constexpr Word<ThemeChoice> kThemes[] = {
    {ThemeChoice::System, "system"}, {ThemeChoice::Light, "light"}, {ThemeChoice::Dark, "dark"}};

constexpr Word<Arithmetic> kArithmetics[] = {{Arithmetic::Exact, "exact"}, {Arithmetic::Fast, "fast"}};

template <class Enum, std::size_t N> const char* wordOf(const Word<Enum> (&words)[N], Enum value) {
    for (const auto& entry : words)
        if (entry.value == value) return entry.word;
    return words[0].word;
}

template <class Enum, std::size_t N> Enum valueOf(const Word<Enum> (&words)[N], const std::string& word) {
    std::string choices;
    for (const auto& entry : words) {
        if (word == entry.word) return entry.value;
        choices += (choices.empty() ? "" : ", ") + std::string(entry.word);
    }
    throw Error({"\"" + word + "\" is not known", "", "Choose one of " + choices});
}

/// Ascending tokens as half-open ranges, so that a long selection is a short text: [10, 11, 12, 20] as [[10, 13], [20,
/// 21]].
Json toRuns(const std::vector<TokenIndex>& tokens) {
    auto runs = Json::array();
    for (std::size_t i = 0; i < tokens.size();) {
        std::size_t j = i + 1;
        while (j < tokens.size() && tokens[j] == tokens[j - 1] + 1) ++j;
        runs.push_back({tokens[i], tokens[j - 1] + 1});
        i = j;
    }
    return runs;
}

/// Throws Error for runs that are empty, not ascending or not of whole numbers, Json::exception for anything else.
std::vector<TokenIndex> fromRuns(const Json& runs) {
    constexpr std::int64_t kLimit = std::int64_t{1} << 24;
    std::vector<TokenIndex> tokens;
    for (const Json& run : runs) {
        const auto begin = wholeNumber<std::int64_t>(run.at(0)), end = wholeNumber<std::int64_t>(run.at(1));
        const std::int64_t after = tokens.empty() ? 0 : tokens.back() + 1;
        if (begin < after || end <= begin || end > kLimit)
            throw Error({"The selected tokens are not ascending half-open ranges", "", "write [[begin, end], ...]"});
        for (std::int64_t token = begin; token < end; ++token) tokens.push_back(static_cast<TokenIndex>(token));
    }
    return tokens;
}

/// Unknown keys first, overwritten by known ones.
Json startFrom(const std::string& unknownKeys) {
    if (unknownKeys.empty()) return Json::object();
    Json json = parsedOrderedJson(unknownKeys);
    return json.is_object() ? json : Json::object();
}

FileTextChange filesTo(const fs::path& folder) {
    return [folder](const std::string& text) { return fileTextTo(folder, text); };
}

/// A policy or a budget of the session file with this path. Its files are named relative to the folder of that file.
template <class Spec> Spec specFrom(const Json& json, const std::string& path) {
    const fs::path folder = folderOf(path);
    return withFiles(Spec::parse(json.get<std::string>()),
                     [&](const std::string& text) { return fileTextFrom(folder, text); });
}

Json writePane(const SessionPane& pane, const fs::path& folder) {
    Json json = startFrom(pane.unknownKeys);
    if (!pane.recordedPath.empty())
        json["recorded"] = relativeTo(folder, pane.recordedPath);
    else
        json["policy"] = withFiles(pane.policy, filesTo(folder)).text();
    return json;
}

SessionPane readPane(const Json& json, const std::string& path, const std::string& prefix) {
    SessionPane pane;
    if (json.is_string()) { // the short form in lessons
        pane.policy = specFrom<PolicySpec>(json, path);
        return pane;
    }
    ObjectReader reader(json, path, prefix);
    reader.with("recorded",
                [&](const Json& v) { pane.recordedPath = absoluteFrom(folderOf(path), v.get<std::string>()); });
    reader.with("policy", [&](const Json& v) { pane.policy = specFrom<PolicySpec>(v, path); });
    if (pane.recordedPath.empty() && pane.policy.policy.empty())
        throw Error(
            {"A pane names neither a policy nor a recorded list", prefix + "policy", "add one of the two", path});
    pane.unknownKeys = reader.rest();
    return pane;
}

Json writeRanges(const std::map<std::string, Viewport::Range>& ranges) {
    Json json = Json::object();
    for (const auto& [view, range] : ranges) json[view] = {range.xMin, range.xMax, range.yMin, range.yMax};
    return json;
}

Json writeCompared(const Session& session, const fs::path& folder) {
    Json json = startFrom(session.compared.unknownKeys);
    json["capture"] = relativeTo(folder, session.compared.path);
    json["selected"] = toRuns(session.compared.selected);
    json["selection_name"] = session.compared.selectionName;
    json["strip_top"] = session.look.comparedTop;
    json["ranges"] = writeRanges(session.look.comparedRanges);
    return json;
}

Json writeLook(const LookState& look) {
    Json json = startFrom(look.unknownKeys);
    json["theme"] = wordOf(kThemes, look.theme);
    json["scale"] = look.scale;
    json["compact"] = look.compact;
    json["head_measure"] = look.headMeasure;
    json["reduced_motion"] = look.reducedMotion;
    json["strip_top"] = look.stripTop;
    if (look.cursor) json["cursor"] = *look.cursor;
    json["ranges"] = writeRanges(look.ranges);
    if (const DockPlaces& docks = look.docks; !docks.arrangement.empty())
        json["docks"] = {{"arrangement", docks.arrangement}, {"state", docks.state}, {"by_hand", docks.byHand}};
    return json;
}

Viewport::Range readRange(const Json& json) {
    const Viewport::Range range{json.at(0).get<double>(), json.at(1).get<double>(), json.at(2).get<double>(),
                                json.at(3).get<double>()};
    if (!(range.xMin < range.xMax) || !(range.yMin < range.yMax))
        throw Error({"A view range is empty", "", "write [x min, x max, y min, y max]"});
    return range;
}

std::map<std::string, Viewport::Range> readRanges(const Json& json) {
    std::map<std::string, Viewport::Range> ranges;
    for (const auto& [view, range] : json.items()) ranges[view] = readRange(range);
    return ranges;
}

TokenIndex topFrom(const Json& json) {
    const auto token = wholeNumber<TokenIndex>(json);
    if (token < 0) throw Error({"The text begins before the first token", "", "give a position, at least 0"});
    return token;
}

void readCompared(Session& session, const Json& json, const std::string& path) {
    ObjectReader reader(json, path, "compared/");
    reader.with("capture",
                [&](const Json& v) { session.compared.path = absoluteFrom(folderOf(path), v.get<std::string>()); });
    reader.with("selected", [&](const Json& v) { session.compared.selected = fromRuns(v); });
    reader.take("selection_name", session.compared.selectionName);
    reader.with("strip_top", [&](const Json& v) { session.look.comparedTop = topFrom(v); });
    reader.with("strip_scroll", [](const Json&) {}); // of older files: pixels, which name no token without the width
    reader.with("ranges", [&](const Json& v) { session.look.comparedRanges = readRanges(v); });
    session.compared.unknownKeys = reader.rest();
}

std::optional<TokenIndex> cursorOf(const Json& json) {
    if (json.is_null()) return std::nullopt; // all tokens are read
    const auto cursor = wholeNumber<TokenIndex>(json);
    if (cursor < 0)
        throw Error({"The cursor lies before the first token", "", "give the number of tokens read, at least 0"});
    return cursor;
}

LookState readLook(const Json& json, const std::string& path) {
    LookState look;
    ObjectReader reader(json, path, "look/");
    reader.with("theme", [&](const Json& v) { look.theme = valueOf(kThemes, v.get<std::string>()); });
    reader.with("scale", [&](const Json& v) {
        look.scale = v.get<double>();
        if (!(look.scale >= 1 && look.scale <= 2))
            throw Error({"The interface scale lies outside 1 to 2", "", "use 1, 1.25, 1.5 or 2"});
    });
    reader.take("compact", look.compact);
    reader.with("head_measure", [&](const Json& v) {
        // From a version with other measures: the default measure is better than losing the session.
        if (const auto id = v.get<std::string>(); isHeadMeasure(id)) look.headMeasure = id;
    });
    reader.take("reduced_motion", look.reducedMotion);
    reader.with("strip_top", [&](const Json& v) { look.stripTop = topFrom(v); });
    reader.with("strip_scroll", [](const Json&) {}); // as in `readCompared`
    reader.with("cursor", [&](const Json& v) { look.cursor = cursorOf(v); });
    reader.with("ranges", [&](const Json& v) { look.ranges = readRanges(v); });
    reader.with("docks", [&](const Json& v) {
        look.docks = {v.at("arrangement").get<std::string>(), v.at("state").get<std::string>(),
                      v.at("by_hand").get<bool>()};
        constexpr std::size_t kLargest = 65'536; // some 3,000 for all docks; Qt reads what is nested by recursion
        if (look.docks.state.size() > kLargest)
            throw Error({"The places of the docks are too long", "", "drop the key"});
    });
    look.unknownKeys = reader.rest();
    return look;
}

void writeSetting(Json& json, const Session& session, const fs::path& folder) {
    json["layer"] = session.layer.value;
    json["kv_head"] = session.kvHead.value;
    json["query_head"] = session.queryHead.value;
    json["cut"] = session.cut;
    json["panes"] = Json::array();
    for (const SessionPane& pane : session.panes) json["panes"].push_back(writePane(pane, folder));
    json["active_pane"] = session.activePane;
    json["budget"] = withFiles(session.budget, filesTo(folder)).text();
    json["panes_linked"] = session.panesLinked;
    json["seed"] = session.seed;
    json["selected"] = toRuns(session.selected);
    json["selection_name"] = session.selectionName;
    json["view_options"] = session.viewOptions;
    for (Json& options : json["view_options"])
        for (Json& text : options) text = fileTextTo(folder, text.get<std::string>());
}

Json toJson(const Session& session, const fs::path& folder) {
    Json json = startFrom(session.unknownKeys);
    json["format"] = kFormat;
    json["version"] = kSessionFileVersion;
    if (session.live.text().empty())
        json["capture"] = relativeTo(folder, session.capturePath);
    else
        json["live"] = ownJson(session.live.text());
    writeSetting(json, session, folder);
    json["arithmetic"] = wordOf(kArithmetics, session.arithmetic);
    if (!session.compared.path.empty()) json["compared"] = writeCompared(session, folder);
    json["layout"] = wordOf(kLayouts, session.layout);
    json["look"] = writeLook(session.look);
    if (!session.lesson.empty()) json["lesson"] = lessonTo(folder, ownJson(session.lesson));
    return json;
}

/// A layer or head index. Values beyond the capture are clamped or refused later; here they only must not wrap around.
std::int64_t numberOf(const Json& value) {
    constexpr std::int64_t kLimit = 1 << 30;
    return std::clamp(wholeNumber<std::int64_t>(value), -kLimit, kLimit);
}

void readPlaceInCapture(ObjectReader& reader, Session& session) {
    reader.with("layer", [&](const Json& v) { session.layer = LayerIndex(numberOf(v)); });
    reader.with("kv_head", [&](const Json& v) { session.kvHead = KvHeadIndex(numberOf(v)); });
    reader.with("query_head", [&](const Json& v) { session.queryHead = QueryHeadIndex(numberOf(v)); });
    reader.take("cut", session.cut);
    reader.take("seed", session.seed);
    reader.with("arithmetic", [&](const Json& v) { session.arithmetic = valueOf(kArithmetics, v.get<std::string>()); });
    reader.with("selected", [&](const Json& v) { session.selected = fromRuns(v); });
    reader.take("selection_name", session.selectionName);
}

void readPanes(ObjectReader& reader, Session& session, const std::string& path) {
    reader.with("panes", [&](const Json& v) {
        session.panes.clear();
        if (v.size() > static_cast<std::size_t>(kMaxPanes))
            throw Error({"The session has more panes than the window", "", "keep at most four"});
        for (std::size_t i = 0; i < v.size(); ++i)
            session.panes.push_back(readPane(v.at(i), path, "panes/" + std::to_string(i) + "/"));
    });
    reader.take("active_pane", session.activePane);
    if (session.activePane < 0 || session.activePane >= static_cast<int>(session.panes.size())) session.activePane = 0;
    reader.with("budget", [&](const Json& v) { session.budget = specFrom<Budget>(v, path); });
    reader.take("panes_linked", session.panesLinked);
}

Session fromJson(Json json, const std::string& path) {
    ObjectReader reader(std::move(json), path, "");
    std::string format;
    std::int64_t version = 0;
    reader.take("format", format);
    reader.take("version", version);
    if (format != kFormat)
        throw Error({"The file is not a session", "format", "open a file that KVScope saved with Ctrl+S", path});
    if (version < 1 || version > kSessionFileVersion)
        throw Error(
            {"The session was written by a newer version", "version", "open it with that version of KVScope", path});
    Session session;
    reader.with("capture",
                [&](const Json& v) { session.capturePath = absoluteFrom(folderOf(path), v.get<std::string>()); });
    reader.with("live", [&](const Json& v) {
        const live::LiveDescription description = live::descriptionOf(jsonLine(v));
        session.live = SharedText(live::textOf(description));
        session.cut = live::cutOf(description); // unless the session has its own
        session.capturePath.clear();
    });
    readPlaceInCapture(reader, session);
    readAtShownCut(session); // the cut may have moved since the context was read
    readPanes(reader, session, path);
    reader.with("layout", [&](const Json& v) { session.layout = valueOf(kLayouts, v.get<std::string>()); });
    reader.take("view_options", session.viewOptions);
    for (auto& [view, options] : session.viewOptions)
        for (auto& [option, text] : options) text = fileTextFrom(folderOf(path), text);
    reader.with("look", [&](const Json& v) { session.look = readLook(v, path); });
    reader.with("compared", [&](const Json& v) { readCompared(session, v, path); });
    reader.with("lesson", [&](const Json& v) { session.lesson = jsonLine(lessonFrom(folderOf(path), v)); });
    session.unknownKeys = reader.rest();
    return session;
}

constexpr std::size_t kLargestSession = std::size_t{1} << 26;

} // namespace

std::string settingText(const Session& session) {
    Json json = Json::object();
    writeSetting(json, session, {});
    const Json look = writeLook(session.look);
    for (const char* key : {"cursor", "ranges"})
        if (look.contains(key)) json[key] = look[key];
    if (!session.look.cursor) json["cursor"] = nullptr; // all tokens are read
    return jsonLine(json);
}

void readSetting(const std::string& text, Session& session) {
    ObjectReader reader(ownJson(text), {}, {});
    readPlaceInCapture(reader, session);
    readPanes(reader, session, {});
    reader.with("view_options", [&](const Json& v) {
        for (const auto& [view, options] : v.items())
            for (const auto& [option, value] : options.items())
                setViewOption(session, view, option, value.get<std::string>());
    });
    reader.with("cursor", [&](const Json& v) { session.look.cursor = cursorOf(v); });
    reader.with("ranges", [&](const Json& v) { session.look.ranges = readRanges(v); });
}

bool isSessionFile(const std::string& path) {
    std::error_code missing;
    if (!fs::is_regular_file(path, missing) || fs::file_size(path, missing) > kLargestSession) return false;
    if (std::ifstream(path, std::ios::binary).peek() != '{') return false;
    try {
        const Json json = parsedOrderedJson(readJsonText(path, kLargestSession));
        return json.is_object() && json.value("format", Json()) == kFormat;
    } catch (const Error&) { // nested too deep, or unreadable
        return false;
    }
}

Session readSession(const std::string& path) {
    Json json = parsedOrderedJson(readJsonText(path, kLargestSession));
    if (!json.is_object())
        throw Error({"The file is not a session", "", "open a JSON file that KVScope saved with Ctrl+S", path});
    return fromJson(std::move(json), path);
}

void writeSession(const std::string& path, const Session& session) {
    checkIsNoSource(path, filesReadBy(session));
    writeFileAtomically(path, jsonLines(toJson(session, folderOf(path)), 2) + "\n");
}

} // namespace kvscope
