// Reads and writes lessons: a lesson is a session with texts, so it opens and saves like any other session.
#include "app/lessons/lesson.h"

#include "app/lessons/lesson_quantities.h"
#include "app/study/session_file.h"
#include "core/base/error.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>

namespace kvscope {

namespace {

using Json = nlohmann::json;

[[noreturn]] void refuse(const std::string& what, const std::string& key) {
    throw Error(
        {.sentence = "the lesson " + what, .place = "lesson/" + key, .remedy = "Repair this key of the session file"});
}

LessonStop readStop(const Json& json) {
    LessonStop stop;
    stop.text = json.at("text").get<std::string>();
    if (json.contains("cursor")) stop.cursor = json["cursor"].get<TokenIndex>();
    if (json.contains("budget")) stop.budget = Budget::parse(json["budget"].get<std::string>());
    if (json.contains("active_pane")) stop.activePane = json["active_pane"].get<int>();
    if (json.contains("panes")) {
        stop.panes.emplace();
        for (const Json& pane : json["panes"]) stop.panes->push_back(PolicySpec::parse(pane.get<std::string>()));
    }
    return stop;
}

void readQuestion(const Json& json, Lesson& lesson) {
    lesson.question = json.at("text").get<std::string>();
    lesson.quantity = json.at("quantity").get<std::string>();
    lesson.pane = json.value("pane", 0);
    lesson.claim = json.at("claim").get<int>();
    lesson.answer = json.at("answer").get<std::string>();
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

Lesson readLesson(const Json& json) {
    Lesson lesson;
    lesson.title = json.at("title").get<std::string>();
    lesson.group = json.value("group", "");
    lesson.paper = json.value("paper", "");
    lesson.number = json.value("number", 0);
    lesson.text = json.at("text").get<std::string>();
    lesson.views = json.value("views", std::vector<std::string>{});
    for (const Json& stop : json.value("stops", Json::array())) lesson.stops.push_back(readStop(stop));
    readQuestion(json.at("question"), lesson);
    check(lesson);
    return lesson;
}

} // namespace

std::optional<Lesson> lessonOf(const Session& session) {
    if (session.lesson.empty()) return std::nullopt;
    try {
        return readLesson(Json::parse(session.lesson));
    } catch (const Json::exception& wrong) {
        refuse(std::string("is incomplete: ") + wrong.what(), "");
    }
}

void applyStop(Session& session, const LessonStop& stop) {
    if (stop.cursor) session.look.cursor = stop.cursor;
    if (stop.budget) setBudget(session, *stop.budget);
    if (stop.panes) {
        session.panes.clear();
        for (const PolicySpec& spec : *stop.panes) session.panes.push_back({spec, {}, {}});
        session.activePane = 0;
    }
    if (stop.activePane)
        session.activePane = std::clamp(*stop.activePane, 0, std::max(0, static_cast<int>(session.panes.size()) - 1));
}

bool isAt(const Session& session, const LessonStop& stop) {
    Session there = session;
    applyStop(there, stop);
    return there == session;
}

std::vector<LessonFile> lessonsIn(const std::string& folder) {
    std::vector<LessonFile> lessons;
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator(folder, none)) {
        const std::string path = entry.path().string();
        if (entry.path().extension() != ".kvscope" || !isSessionFile(path)) continue;
        if (auto lesson = lessonOf(readSession(path))) lessons.push_back({path, std::move(*lesson)});
    }
    std::ranges::sort(lessons, [](const LessonFile& a, const LessonFile& b) {
        return std::pair(a.lesson.number, a.path) < std::pair(b.lesson.number, b.path);
    });
    return lessons;
}

} // namespace kvscope
