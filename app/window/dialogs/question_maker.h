#pragma once

#include "app/lessons/lesson.h"
#include "app/workbench/workbench.h"

#include <QWidget>

#include <optional>
#include <string>

class QCheckBox;
class QLabel;
class QLineEdit;
class QPlainTextEdit;

namespace kvscope {

class ChoiceBox;

/// The question of a lesson in the making: its text, the number of a pane that decides, the bounds between the choices
/// and the answer. The question is about what is shown when the number is chosen, and the number is computed then.
class QuestionMaker : public QWidget {
public:
    QuestionMaker(Workbench& workbench, QWidget* parent);

    void show(const Lesson& lesson);
    void writeTo(Lesson& lesson) const; ///< no question where the text is empty
    QString missing() const;            ///< why the question cannot be saved; empty: nothing

private:
    void ask();
    void refresh();
    std::vector<LessonChoice> choices() const; ///< empty: the bounds are wrong
    std::vector<std::string> withheldOf(const Lesson& lesson) const;

    Workbench& m_workbench;
    Lesson m_of;                   ///< as read; its setting, number and pane as asked
    QString m_read;                ///< the bounds as read: their choices have words of their own,
    std::string m_readOf;          ///< which are about this quantity
    bool m_asked = false;          ///< anew: the claim as read says nothing any more
    std::optional<double> m_value; ///< what was computed
    QPlainTextEdit *m_text, *m_answer;
    ChoiceBox *m_quantity, *m_pane;
    QLineEdit* m_bounds;
    QCheckBox* m_withhold;
    QLabel* m_now;
};

} // namespace kvscope
