#pragma once

#include "app/workbench/workbench.h"
#include "core/policies/policy_card.h"

#include <QFont>
#include <QString>
#include <QWidget>

#include <tuple>

class QLabel;

namespace kvscope {

class StepDriver;

/// What a policy does: the card's own text, with its paper. Of the active pane's policy, or, where lessons are taught,
/// of the one whose story is told.
class ExplanationPanel : public QWidget {
    Q_OBJECT

public:
    ExplanationPanel(Workbench& workbench, StepDriver& steps, QWidget* parent = nullptr);

protected:
    void resizeEvent(QResizeEvent* event) override;

private:
    void refresh();
    void setPage(const QString& markdown);
    std::string explainedPolicy() const; ///< id; empty: the active pane's
    void show(const PolicyCard& card, const QString& where);

    Workbench& m_workbench;
    StepDriver& m_steps;
    QLabel *m_name, *m_paper, *m_text;
    std::tuple<QString, QFont, QFont, int>
        m_shown; ///< Markdown, its fonts, and the columns that its formulas are set in
};

} // namespace kvscope
