// Reads and writes lessons: a lesson is a session with texts, so it opens and saves like any other session.
#include "app/lessons/lesson.h"

#include "app/lessons/lesson_quantities.h"
#include "app/live/live_context.h"
#include "app/study/session_file.h"
#include "core/base/error.h"
#include "views/view.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <tuple>
#include <utility>

namespace kvscope {

namespace {

using Json = nlohmann::ordered_json;

[[noreturn]] void refuse(const std::string& what, const std::string& key) {
    throw Error({"the lesson " + what, "lesson/" + key, "Repair this key of the session file"});
}

/// `before` with what an object of the lesson names.
Session settingFrom(const Json& json, const Session& before) {
    Session setting = before;
    readSetting(json.dump(), setting);
    return setting;
}

/// The names of views that exist, else throws Error.
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
    const auto ascending = [](const LessonChoice& a, const LessonChoice& b) { return a.below < b.below; };
    if (lesson.choices.size() < 2 || !std::ranges::is_sorted(lesson.choices, ascending) ||
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
    if (json.contains("live")) lesson.live = live::textOf(live::descriptionOf(json["live"].dump())); // checked
    lesson.start = session;
    if (json.contains("start")) {
        lesson.start.viewOptions.clear(); // a setting names options one by one
        readSetting(json["start"].dump(), lesson.start);
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
        return readLesson(Json::parse(session.lesson), session);
    } catch (const Json::exception& wrong) {
        refuse(std::string("is incomplete: ") + wrong.what(), "");
    }
}

void noteStart(Session& session) {
    Json lesson = Json::parse(session.lesson, nullptr, false);
    if (!lesson.is_object() || lesson.contains("start")) return;
    lesson["start"] = Json::parse(settingText(session));
    session.lesson = lesson.dump();
}

void applySetting(Session& session, const Session& setting) {
    Session shown = setting;
    keepInterface(shown, session);
    shown.capturePath = session.capturePath;
    shown.live = session.live;
    shown.arithmetic = session.arithmetic;
    shown.layout = session.layout;
    shown.look.headMeasure = session.look.headMeasure;
    shown.look.stripScroll = session.look.stripScroll; // the strip goes to the selection by itself
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

} // namespace kvscope
