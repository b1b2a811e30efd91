// The inverse of reading a lesson: settings become the keys in which they differ from the start.
#include "app/lessons/lesson.h"

#include "app/study/session_file.h"

#include <nlohmann/json.hpp>

#include <cmath>

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

/// Adds what differs from the start.
void writeDifference(Json& json, const Session& of, const Json& start) {
    Json setting = Json::parse(settingText(of));
    setBackOptions(setting, start);
    for (const auto& [key, value] : setting.items())
        if (!start.contains(key) || start.at(key) != value) json[key] = value;
}

Json stopOf(const LessonStop& stop, const Json& start) {
    Json json;
    if (!stop.title.empty()) json["title"] = stop.title;
    json["text"] = stop.text;
    if (!stop.views.empty()) json["views"] = stop.views;
    writeDifference(json, stop.setting, start);
    return json;
}

Json questionOf(const Lesson& lesson, const Json& start) {
    Json json{{"text", lesson.question}, {"quantity", lesson.quantity}, {"pane", lesson.pane}, {"claim", lesson.claim}};
    json["choices"] = Json::array();
    for (const LessonChoice& choice : lesson.choices) {
        json["choices"].push_back({{"text", choice.text}});
        if (std::isfinite(choice.below)) json["choices"].back()["below"] = choice.below;
    }
    json["answer"] = lesson.answer;
    if (!lesson.recorded.empty()) json["recorded"] = lesson.recorded;
    if (!lesson.withheld.empty()) json["withheld"] = lesson.withheld;
    if (!lesson.answeredViews.empty()) json["views"] = lesson.answeredViews;
    writeDifference(json, lesson.asked, start);
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
    json.erase("question");
    if (!lesson.question.empty()) json["question"] = questionOf(lesson, start);
    session.lesson = json.dump();
    return session;
}

} // namespace kvscope
