#pragma once

#include <QWidget>

#include "app/lessons/lesson_answer.h"
#include "app/workbench/workbench.h"

#include <optional>

class QButtonGroup;
class QLabel;
class QPushButton;
class QVBoxLayout;

namespace kvscope {

/// The open lesson: its text, its stops (a click makes the session what a stop is about), and its question. The answer
/// is computed from the panes as they are when it is asked for, and again whenever they change.
class LessonPanel : public QWidget {
    Q_OBJECT

public:
    explicit LessonPanel(Workbench& workbench, QWidget* parent = nullptr);

signals:
    void answered();
    void opened(const Lesson& lesson); ///< another lesson than before

private:
    void refresh();
    void clear();
    void build();
    void buildStops();
    void buildQuestion();
    void followStops();
    void ask();
    void show(const LessonAnswer& answer);
    void refuse(const QString& why);

    Workbench& m_workbench;
    std::optional<Lesson> m_lesson;
    std::string m_source;   ///< of the lesson that is built
    std::string m_askedKey; ///< the request that the answer belongs to; empty: not asked
    QVBoxLayout* m_column = nullptr;
    QWidget* m_body = nullptr;
    std::vector<QPushButton*> m_stops;
    QButtonGroup* m_choices = nullptr;
    QPushButton* m_show = nullptr;
    QLabel *m_verdict = nullptr, *m_answer = nullptr;
};

} // namespace kvscope
