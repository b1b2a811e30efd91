#pragma once

#include "app/session/workbench.h"

#include <QWidget>

class QLabel;

namespace kvscope {

class StepDriver;

/// What a policy does: the card's own text, with its paper. Of the active pane's policy, or, where lessons are taught, of
/// the one whose story is told.
class ExplanationPanel : public QWidget {
    Q_OBJECT

public:
    ExplanationPanel(Workbench& workbench, StepDriver& steps, QWidget* parent = nullptr);

private:
    void refresh();
    std::string taughtPolicy() const; ///< id; empty: the active pane's
    void show(const PolicyCard& card, const QString& where);

    Workbench& m_workbench;
    StepDriver& m_steps;
    QLabel *m_name, *m_paper, *m_text;
};

} // namespace kvscope
