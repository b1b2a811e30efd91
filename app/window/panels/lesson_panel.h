#pragma once

#include <QWidget>

#include "app/lessons/lesson_answer.h"
#include "app/workbench/workbench.h"

#include <optional>
#include <vector>

class QButtonGroup;
class QLabel;
class QPushButton;
class QVBoxLayout;

namespace kvscope {

/// The open lesson: text, stops (a click applies a stop's session), and question. The answer is computed from the
/// current panes when it is asked for, and again when they change.
class LessonPanel : public QWidget {
    Q_OBJECT

public:
    explicit LessonPanel(Workbench& workbench, QWidget* parent = nullptr);

    /// To the next stop, or the one before; false at the ends and without a lesson.
    bool stepStop(int by);

signals:
    void answered();
    void opened(const Lesson& lesson); ///< another lesson was opened

private:
    void refresh();
    void clear();
    void build();
    void buildStops();
    void buildQuestion();
    void goToStop(std::size_t stop);
    void followStops();
    void showInSight(QWidget* part);
    void ask();
    void show(const LessonAnswer& answer);
    void refuse(const QString& why);

    Workbench& m_workbench;
    std::optional<Lesson> m_lesson;
    std::string m_source;   ///< source of the displayed lesson
    std::string m_askedKey; ///< the request that the answer belongs to; empty: not asked
    QVBoxLayout* m_column = nullptr;
    QWidget* m_body = nullptr;
    std::vector<QPushButton*> m_stops;
    std::size_t m_stop = 0; ///< the marked one; past the last: none
    int m_visited = -1;     ///< the last one gone to, which playing the steps leaves; -1: none
    QButtonGroup* m_choices = nullptr;
    QPushButton* m_show = nullptr;
    QLabel* m_place = nullptr; ///< "stop 2 of 5"
    QLabel *m_verdict = nullptr, *m_answer = nullptr;
};

} // namespace kvscope
