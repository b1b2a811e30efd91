#pragma once

#include "app/study/session.h"

#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace kvscope {

/// A sentence of a lesson with its setting: a step cursor, a budget, other panes. What it does not name stays.
struct LessonStop {
    std::string text;
    std::optional<TokenIndex> cursor;
    std::optional<Budget> budget;
    std::optional<std::vector<PolicySpec>> panes;
    std::optional<int> activePane;
};

/// One of the predictions: the number lies below `below` and not below the previous choice's bound.
struct LessonChoice {
    std::string text;
    double below = std::numeric_limits<double>::infinity();
};

/// A lesson as its session file holds it under the key "lesson".
struct Lesson {
    std::string title, group, paper;
    int number = 0;                 ///< place in the list
    std::string text;               ///< Markdown
    std::vector<std::string> views; ///< views to raise, see DockLayout
    std::vector<LessonStop> stops;
    std::string question;
    std::vector<LessonChoice> choices; ///< ascending bounds, the last one has none
    std::string quantity;              ///< the deciding quantity, see lesson_quantities.h
    int pane = 0;                      ///< the pane of the quantity
    int claim = 0;                     ///< the choice that `answer` explains; a test compares it with the computed one
    std::string answer;                ///< with {quantity} placeholders for numbers; {value} is the deciding one
};

/// The lesson of a session; nothing for a session without one. Throws Error (the key is the place) for an invalid
/// lesson.
std::optional<Lesson> lessonOf(const Session& session);

/// Applies a stop's setting to the session.
void applyStop(Session& session, const LessonStop& stop);
/// True while the session has the stop's setting, cursor included.
bool isAt(const Session& session, const LessonStop& stop);

struct LessonFile {
    std::string path;
    Lesson lesson;
};
/// The lessons of a folder by number; other files are skipped, broken lessons throw Error.
std::vector<LessonFile> lessonsIn(const std::string& folder);

} // namespace kvscope
