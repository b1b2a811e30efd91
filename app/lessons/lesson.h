#pragma once

#include "app/study/session.h"

#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace kvscope {

/// A sentence of a lesson with what it is about: a point of the stream, a budget, other panes. What is not named stays.
struct LessonStop {
    std::string text;
    std::optional<TokenIndex> cursor;
    std::optional<Budget> budget;
    std::optional<std::vector<PolicySpec>> panes;
    std::optional<int> activePane;
};

/// One of the predictions: that the number lies below `below` and not below that of the choice before.
struct LessonChoice {
    std::string text;
    double below = std::numeric_limits<double>::infinity();
};

/// A lesson as its session file holds it under the key "lesson".
struct Lesson {
    std::string title, group, paper;
    int number = 0;                 ///< place in the list
    std::string text;               ///< Markdown
    std::vector<std::string> views; ///< shown in front, see DockLayout
    std::vector<LessonStop> stops;
    std::string question;
    std::vector<LessonChoice> choices; ///< ascending bounds, the last one has none
    std::string quantity;              ///< decides, see lesson_quantities.h
    int pane = 0;                      ///< of which the quantity is computed
    int claim = 0;                     ///< the choice that `answer` explains; a test holds it against the computed one
    std::string answer;                ///< with {quantity} for numbers: {value} is the deciding one
};

/// The lesson that a session carries; nothing in one that carries none. Throws Error (the key is the place) for a
/// lesson that cannot be followed.
std::optional<Lesson> lessonOf(const Session& session);

/// Makes the session what the stop is about.
void applyStop(Session& session, const LessonStop& stop);
/// True while the session is what the stop is about, cursor included.
bool isAt(const Session& session, const LessonStop& stop);

struct LessonFile {
    std::string path;
    Lesson lesson;
};
/// The lessons of a folder by number; files that are no lessons are left out, broken ones throw Error.
std::vector<LessonFile> lessonsIn(const std::string& folder);

} // namespace kvscope
