#pragma once

#include <QWidget> // first: moc of Qt 6.4 stumbles over <concepts> otherwise

#include "app/lessons/lesson.h"
#include "app/workbench/workbench.h"

#include <optional>
#include <string>

class QCheckBox;
class QLabel;
class QLineEdit;
class QPlainTextEdit;

namespace kvscope {

class ChoiceBox;

/// The question of a lesson in the making: its text, the quantity and pane that decide it, the bounds between the
/// choices, and the answer. It is about what is shown when the quantity is chosen, and the value is computed then.
class QuestionMaker : public QWidget {
    Q_OBJECT

public:
    QuestionMaker(Workbench& workbench, QWidget* parent);

    void show(const Lesson& lesson);
    void writeTo(Lesson& lesson) const; ///< no question where the text is empty
    QString missing() const;            ///< why the question cannot be saved; empty: it can

signals:
    void edited(); ///< a text, or the number has been computed

private:
    void ask();
    void refresh();
    std::vector<LessonChoice> choices() const; ///< empty: the bounds are wrong
    std::vector<std::string> withheldOf(const Lesson& lesson) const;

    Workbench& m_workbench;
    Lesson m_of;                   ///< the lesson as read, with setting, quantity and pane as last asked
    QString m_read;                ///< the bounds as read, whose choices have words of their own
    std::string m_readOf;          ///< the quantity that these words are about
    bool m_asked = false;          ///< asked anew: the claim and the recorded numbers as read no longer hold
    std::optional<double> m_value; ///< the computed value of the quantity
    QPlainTextEdit *m_text, *m_answer;
    ChoiceBox *m_quantity, *m_pane;
    QLineEdit* m_bounds;
    QCheckBox* m_withhold;
    QLabel* m_now;
};

} // namespace kvscope
