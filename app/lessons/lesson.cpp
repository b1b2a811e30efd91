// Reads and writes lessons: a lesson is a session with texts, so it opens and saves like any other session.
#include "app/lessons/lesson.h"

#include "app/lessons/lesson_quantities.h"
#include "app/live/live_context.h"
#include "app/study/session_file.h"
#include "core/base/error.h"
#include "core/base/json/json_text.h"
#include "views/view.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <tuple>
#include <utility>

namespace kvscope {

namespace {

using Json = nlohmann::ordered_json;

[[noreturn]] void refuse(const std::string& what, const std::string& key) {
    throw Error({"the lesson " + what, "lesson/" + key, "Repair this key of the session file"});
}

/// `before`, changed by the settings that an object of the lesson names.
Session settingFrom(const Json& json, const Session& before) {
    Session setting = before;
    readSetting(jsonLine(json), setting);
    return setting;
}

/// The view ids that an object of the lesson names. Throws Error for an unknown one.
std::vector<std::string> viewsOf(const Json& json) {
    std::vector<std::string> views = json.value("views", std::vector<std::string>{});
    for (const std::string& id : views) viewById(id);
    return views;
}

LessonStop readStop(const Json& json, const Session& start) {
    return {.title = json.value("title", ""),
            .text = json.at("text").get<std::string>(),
            .views = viewsOf(json),
            .setting = settingFrom(json, start)};
}

void readQuestion(const Json& json, Lesson& lesson) {
    lesson.question = json.at("text").get<std::string>();
    lesson.quantity = json.at("quantity").get<std::string>();
    lesson.pane = json.value("pane", 0);
    lesson.claim = json.at("claim").get<int>();
    lesson.answer = json.at("answer").get<std::string>();
    lesson.withheld = json.value("withheld", lesson.withheld);
    lesson.answeredViews = viewsOf(json);
    lesson.recorded = json.value("recorded", lesson.recorded);
    lesson.asked = settingFrom(json, lesson.start);
    for (const Json& choice : json.at("choices"))
        lesson.choices.push_back(
            {choice.at("text").get<std::string>(), choice.value("below", std::numeric_limits<double>::infinity())});
}

void check(const Lesson& lesson) {
    lessonQuantityById(lesson.quantity);
    for (const std::string& id : quantitiesIn(lesson.answer))
        if (id != "value") lessonQuantityById(id);
    const bool ascending = // no two equal ones: nothing could fall between them
        std::ranges::adjacent_find(lesson.choices, std::ranges::greater_equal(), &LessonChoice::below) ==
        lesson.choices.end();
    if (lesson.choices.size() < 2 || !ascending ||
        lesson.choices.back().below != std::numeric_limits<double>::infinity())
        refuse("needs two choices or more with ascending bounds, the last one without", "question/choices");
    if (lesson.claim < 0 || lesson.claim >= std::ssize(lesson.choices))
        refuse("claims a choice that is not there", "question/claim");
}

Lesson readLesson(const Json& json, const Session& session) {
    Lesson lesson;
    lesson.title = json.at("title").get<std::string>();
    lesson.group = json.value("group", "");
    lesson.paper = json.value("paper", "");
    lesson.number = json.value("number", 0);
    lesson.text = json.at("text").get<std::string>();
    lesson.views = viewsOf(json);
    lesson.parameters = json.value("parameters", std::vector<std::string>{});
    if (json.contains("live")) lesson.live = live::textOf(live::descriptionOf(jsonLine(json["live"]))); // checks it
    lesson.start = session;
    if (json.contains("start")) {
        lesson.start.viewOptions.clear(); // readSetting changes only the options that it names
        readSetting(jsonLine(json["start"]), lesson.start);
    }
    for (const Json& stop : json.value("stops", Json::array())) lesson.stops.push_back(readStop(stop, lesson.start));
    if (!json.contains("question")) return lesson;
    readQuestion(json["question"], lesson);
    check(lesson);
    return lesson;
}

} // namespace

std::optional<Lesson> lessonOf(const Session& session) {
    if (session.lesson.empty()) return std::nullopt;
    try {
        return readLesson(ownJson(session.lesson), session);
    } catch (const Json::exception& wrong) {
        refuse(std::string("is incomplete: ") + wrong.what(), "");
    }
}

void noteStart(Session& session) {
    Json lesson = parsedOrderedJson(session.lesson);
    if (!lesson.is_object() || lesson.contains("start")) return;
    lesson["start"] = ownJson(settingText(session));
    session.lesson = jsonLine(lesson);
}

void applySetting(Session& session, const Session& setting) {
    Session shown = setting;
    keepInterface(shown, session);
    shown.capturePath = session.capturePath;
    shown.live = session.live;
    shown.arithmetic = session.arithmetic;
    shown.layout = session.layout;
    shown.look.headMeasure = session.look.headMeasure;
    shown.look.stripTop = session.look.stripTop; // the token strip scrolls to the selection by itself
    shown.lesson = session.lesson;
    shown.unknownKeys = session.unknownKeys;
    session = std::move(shown);
}

bool isAt(const Session& session, const Session& setting) {
    Session there = session;
    applySetting(there, setting);
    there.look.ranges = session.look.ranges;
    return there == session;
}

bool hasCaseOf(const Session& session, const Session& setting) {
    const auto caseOf = [](const Session& of) {
        std::vector<std::pair<SessionPane, Budget>> panes;
        for (std::size_t pane = 0; pane < of.panes.size(); ++pane)
            panes.emplace_back(of.panes[pane], effectiveBudget(of, pane));
        return std::tuple(of.layer, of.kvHead, of.queryHead, of.cut, of.seed, std::move(panes));
    };
    return caseOf(session) == caseOf(setting);
}

namespace {

/// Calls `broken` for each lesson that cannot be read, with an error that names its path.
std::vector<LessonFile> readLessons(const std::string& folder, const std::function<void(const Error&)>& broken) {
    std::vector<LessonFile> lessons;
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator(folder, none)) {
        const std::string path = entry.path().string();
        if (entry.path().extension() != ".kvscope" || !isSessionFile(path)) continue;
        try {
            if (auto lesson = lessonOf(readSession(path))) lessons.push_back({path, std::move(*lesson)});
        } catch (const Error& error) {
            Error::Parts parts = error.parts();
            parts.path = path;
            broken(Error(parts));
        }
    }
    std::ranges::sort(lessons, [](const LessonFile& a, const LessonFile& b) {
        return std::pair(a.lesson.number, a.path) < std::pair(b.lesson.number, b.path);
    });
    return lessons;
}

} // namespace

std::vector<LessonFile> lessonsIn(const std::string& folder) {
    return readLessons(folder, [](const Error& error) { throw error; });
}

std::vector<LessonFile> readableLessonsIn(const std::string& folder, std::vector<std::string>& broken) {
    return readLessons(folder, [&](const Error& error) { broken.emplace_back(error.what()); });
}

const LessonFile* fileOf(const Session& session, const std::vector<LessonFile>& files) {
    std::optional<Lesson> open;
    try {
        open = lessonOf(session);
    } catch (const Error&) { // the lesson panel shows the error
    }
    if (!open) return nullptr;
    const auto words = [](const Lesson& of) { return std::tie(of.title, of.text, of.question, of.answer, of.claim); };
    auto file = std::ranges::find_if(files, [&](const LessonFile& of) { return words(of.lesson) == words(*open); });
    if (file == files.end()) file = std::ranges::find(files, open->title, [](auto& of) { return of.lesson.title; });
    return file == files.end() ? nullptr : &*file;
}

// Writing a lesson is the inverse of reading one: a setting is written as the keys in which it differs from the start.
namespace {

/// Names the default of each option that only the start sets: a stop changes no option that it does not name. Views and
/// options that this version does not know stay as the start has them.
void setBackOptions(Json& setting, const Json& start) {
    const Json& views = start.at("view_options");
    for (const View* view : allViews()) {
        const auto options = views.find(view->card().id);
        if (options == views.end()) continue;
        const ParameterValues defaults(view->card().options);
        Json& here = setting["view_options"][view->card().id];
        for (const auto& [option, text] : options->items())
            if (!here.contains(option) && defaults.has(option)) here[option] = defaults.text(option);
    }
}

void writeDifference(Json& json, const Session& of, const Json& start) {
    Json setting = ownJson(settingText(of));
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
    Json json = of.lesson.empty() ? Json::object() : ownJson(of.lesson);
    json.erase("start"); // the session itself is the start
    json["title"] = lesson.title;
    json["group"] = lesson.group;
    json["text"] = lesson.text;
    json["views"] = lesson.views;
    json["stops"] = Json::array();
    const Json start = ownJson(settingText(session));
    for (const LessonStop& stop : lesson.stops) json["stops"].push_back(stopOf(stop, start));
    json.erase("question");
    if (!lesson.question.empty()) json["question"] = questionOf(lesson, start);
    session.lesson = jsonLine(json);
    return session;
}

} // namespace kvscope
