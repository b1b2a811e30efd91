#pragma once

#include "app/study/session.h"

#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace kvscope {

/// A passage of a lesson with the setting that is shown beside it.
struct LessonStop {
    std::string title, text;        ///< the title may be empty
    std::vector<std::string> views; ///< brought to the front, the first one last; empty: those of the lesson
    Session setting;                ///< the lesson's start with the changes that the stop names; see applySetting
};

/// One of the predictions: the number lies below `below` and not below the previous choice's bound.
struct LessonChoice {
    std::string text;
    double below = std::numeric_limits<double>::infinity();
};

/// A lesson as its session file holds it under the key "lesson".
struct Lesson {
    std::string title, group, paper;
    int number = 0;                      ///< place in the list
    std::string text;                    ///< Markdown
    std::vector<std::string> views;      ///< views to raise, see DockLayout
    std::vector<std::string> parameters; ///< of the active pane's policy, to play with beside the text; or "budget"
    std::string live;                    ///< the context whose model may be asked, see LiveDescription; empty: none
    Session start;                       ///< the setting that is shown beside the text
    std::vector<LessonStop> stops;
    std::string question;                   ///< empty: none
    std::vector<LessonChoice> choices;      ///< ascending bounds, the last one has none
    std::string quantity;                   ///< the deciding quantity, see lesson_quantities.h
    int pane = 0;                           ///< the pane of the quantity
    std::map<std::string, double> recorded; ///< numbers of the model, "quantity@pane", for those who do not run it
    int claim = 0;                     ///< the choice that `answer` explains; a test compares it with the computed one
    std::string answer;                ///< with {quantity} placeholders for numbers; {value} is the deciding one
    Session asked;                     ///< the setting that the question is about
    std::vector<std::string> withheld; ///< views whose findings are hidden until the answer is shown
    std::vector<std::string> answeredViews; ///< brought to the front with the answer
};

/// The lesson of a session; nothing for a session without one. Throws Error (the key is the place) for an invalid
/// lesson.
std::optional<Lesson> lessonOf(const Session& session);

/// Notes the session as the lesson's start, from which its stops differ, unless a start is noted already. Without a
/// start, stops differ from whatever is shown.
void noteStart(Session& session);

/// Shows a setting: all of `setting` but the interface, the layout, the lesson and the engine's arithmetic.
void applySetting(Session& session, const Session& setting);
/// True while the session shows the setting, step cursor included, whatever part of a view is zoomed to.
bool isAt(const Session& session, const Session& setting);
/// True while both compute the same kept lists for the same head.
bool hasCaseOf(const Session& session, const Session& setting);

struct LessonFile {
    std::string path;
    Lesson lesson;
};
/// The lessons of a folder by number; other files are skipped, broken lessons throw Error.
std::vector<LessonFile> lessonsIn(const std::string& folder);

/// The session that a lesson's file holds: `of` at the lesson's start, with title, text, views, stops and question of
/// `lesson`. Stops and question name only what differs from the start. What `of` says of a lesson beside that (its
/// paper) stays.
Session sessionWith(const Lesson& lesson, const Session& of);

/// The lessons of a folder by number, also where some are broken: the messages of these are added to `broken`.
std::vector<LessonFile> readableLessonsIn(const std::string& folder, std::vector<std::string>& broken);

/// The file of the session's lesson: the one with the same texts, else the first of its title; null: there is none.
const LessonFile* fileOf(const Session& session, const std::vector<LessonFile>& files);

} // namespace kvscope
