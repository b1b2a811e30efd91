#pragma once

#include <QPointer>
#include <QWidget>

#include "app/lessons/lesson.h"
#include "app/window/panels/lesson_question.h"

#include <optional>
#include <vector>

class QLabel;
class QPushButton;
class QVBoxLayout;

namespace kvscope {

/// The open lesson: text, stops (a click shows a stop's setting), question, and the way to the lessons before and
/// after. A lesson that is opened again starts afresh.
class LessonPanel : public QWidget {
    Q_OBJECT

public:
    LessonPanel(Workbench& workbench, const std::vector<LessonFile>& lessons, LessonProgress& progress,
                QWidget* parent = nullptr);

    const std::optional<Lesson>& lesson() const { return m_lesson; }
    /// Goes on (1) or back (-1) among start, stops and question; false at the ends and without a lesson.
    bool step(int by);
    void goToLast(); ///< the last of these; of the parts, if one is shown at a time

    /// For a lecture, a lesson has parts, shown one at a time: the text, every stop, the question, its answer.
    int parts() const { return m_lesson ? 1 + static_cast<int>(m_stops.size()) + (m_question ? 2 : 0) : 0; }
    void present();                     ///< shows the part that the reader has come to
    int part() const { return m_part; } ///< -1: all of them
    std::vector<std::string> viewsOfPart() const;
    void showPart(int part);
    int heightFor(int width) const; ///< of what is shown, in the type that is set now
    int leastWidth() const;         ///< the same; valid after heightFor

protected:
    void resizeEvent(QResizeEvent* event) override;

signals:
    void answered();
    void opened(const Lesson& lesson); ///< another lesson was opened, or the same one again
    void viewsWanted(const std::vector<std::string>& views);
    void modelWanted();        ///< the lesson's model is to be started
    void lessonWanted(int by); ///< the next lesson, or the one before; 0: the first

private:
    void refresh(bool isAfresh = false); ///< `isAfresh`: also for a lesson that is opened again
    void clear();
    void build();
    void buildModel();
    void buildStops();
    void buildQuestion();
    void buildWays();
    int lastPart() const { return static_cast<int>(m_stops.size()) + (m_question ? 1 : 0); } ///< but the answer
    void goTo(int part);
    void goToStop(std::size_t stop);
    void followStops();
    void followPart();
    void want(const std::vector<std::string>& views);
    void bringInSight(QWidget* part);
    void showInSight(QWidget* part);
    void scrollToTop();

    Workbench& m_workbench;
    const std::vector<LessonFile>& m_lessons;
    LessonProgress& m_progress;
    std::optional<Lesson> m_lesson;
    QVBoxLayout* m_column = nullptr;
    QWidget* m_body = nullptr;
    std::vector<QWidget*> m_introduction, m_ways;
    std::vector<QPushButton*> m_stops;
    std::size_t m_stop = 0; ///< the marked stop; past the last: none
    int m_part = -1;
    LessonQuestion* m_question = nullptr; ///< null without one
    QWidget* m_model = nullptr;           ///< the row that starts the model; null in a lesson without one
    QWidget* m_try = nullptr;             ///< the parameters to play with
    QLabel* m_place = nullptr;            ///< "stop 2 of 5"
    QPointer<QWidget> m_toSee;            ///< once the panel is laid out again; null: nothing
};

} // namespace kvscope
