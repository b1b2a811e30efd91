// The inverse of reading a lesson: settings become the keys in which they differ from the start.
#include "app/lessons/lesson_writer.h"

#include "app/study/session_file.h"

#include <nlohmann/json.hpp>

namespace kvscope {

namespace {

using Json = nlohmann::ordered_json;

/// Options that only the start sets are set back to their defaults by name: a stop changes options one by one.
void setBackOptions(Json& setting, const Json& start) {
    for (const auto& [view, options] : start.at("view_options").items())
        for (const auto& [option, text] : options.items()) {
            Json& here = setting["view_options"][view];
            if (here.contains(option)) continue;
            const ParameterValues defaults(viewById(view).card().options);
            here[option] = defaults.text(option);
        }
}

Json stopOf(const LessonStop& stop, const Json& start) {
    Json json;
    if (!stop.title.empty()) json["title"] = stop.title;
    json["text"] = stop.text;
    if (!stop.views.empty()) json["views"] = stop.views;
    Json setting = Json::parse(settingText(stop.setting));
    setBackOptions(setting, start);
    for (const auto& [key, value] : setting.items())
        if (!start.contains(key) || start.at(key) != value) json[key] = value;
    return json;
}

} // namespace

Session sessionWith(const Lesson& lesson, const Session& of) {
    Session session = of;
    applySetting(session, lesson.start);
    session.layout = WindowLayout::Teach;
    Json json = of.lesson.empty() ? Json::object() : Json::parse(of.lesson);
    json.erase("start"); // the session itself
    json["title"] = lesson.title;
    json["group"] = lesson.group;
    json["text"] = lesson.text;
    json["views"] = lesson.views;
    json["stops"] = Json::array();
    const Json start = Json::parse(settingText(session));
    for (const LessonStop& stop : lesson.stops) json["stops"].push_back(stopOf(stop, start));
    session.lesson = json.dump();
    return session;
}

} // namespace kvscope
