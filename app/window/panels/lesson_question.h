#pragma once

#include <QWidget>

#include "app/lessons/lesson_answer.h"
#include "app/workbench/workbench.h"

class QButtonGroup;
class QLabel;
class QPushButton;

namespace kvscope {

/// How far the reader has come in the open lesson. Outlives panels, which are rebuilt with the chrome.
struct LessonProgress {
    std::string lesson; ///< its source
    int visited = -1;   ///< the stop last chosen, even if playing the steps has left its setting; -1: none
    int predicted = -1; ///< the choice; -1: none
    bool asked = false; ///< the answer is shown
};

/// The question of a lesson. The answer is computed from the current panes when it is asked for, and again when they
/// change; until then the findings that give it away are withheld, and their pictures while the question is asked
/// alone.
class LessonQuestion : public QWidget {
    Q_OBJECT

public:
    LessonQuestion(Workbench& workbench, const Lesson& lesson, LessonProgress& progress, QWidget* parent);

    /// Shows the answer. At a stop, and when asked again, goes back to the question's own setting first.
    void ask();
    void hideAnswer();
    void setChoicesVisible(bool visible); ///< with the heading above them
    void setAlone(bool alone);            ///< asked by a lecturer, without the stops whose pictures give it away
    /// Asks again when what is shown has changed. `atStop`: the session is at a stop of the lesson.
    void follow(bool atStop);

signals:
    void answered(); ///< the answer is shown; it has its height only after the next layout

protected:
    bool eventFilter(QObject* watched, QEvent* event) override;

private:
    void addChoices();
    void withhold() const;
    void compute();
    void show(const LessonAnswer& answer);
    QString explanationOf(const LessonAnswer& answer, bool own) const;
    bool isOwnCase() const { return hasCaseOf(m_workbench.session(), m_lesson.asked); }

    Workbench& m_workbench;
    const Lesson m_lesson;
    LessonProgress& m_progress;
    std::string m_askedKey; ///< the request that the answer belongs to; empty: not asked
    bool m_atStop = false, m_isAlone = false;
    QLabel* m_predict;
    QButtonGroup* m_choices;
    QPushButton* m_show;
    QLabel *m_verdict, *m_answer;
};

} // namespace kvscope
