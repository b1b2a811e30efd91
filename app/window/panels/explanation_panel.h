#pragma once

#include "app/workbench/workbench.h"
#include "core/policies/policy_card.h"

#include <QFont>
#include <QString>
#include <QStringList>
#include <QWidget>

#include <tuple>

class QLabel;

namespace kvscope {

class FactGrid;
class StepDriver;

/// Explains a policy by its card's text and paper: the active pane's policy, or in the layout Teach the policy whose
/// steps are shown, with where the steps stand and what was checked on this run.
class ExplanationPanel : public QWidget {
    Q_OBJECT

public:
    ExplanationPanel(Workbench& workbench, StepDriver& steps, QWidget* parent = nullptr);

protected:
    void resizeEvent(QResizeEvent* event) override;
    void showEvent(QShowEvent* event) override;

private:
    void refresh();
    void followRun();
    void setPage(const QString& markdown);
    std::string explainedPolicy() const; ///< id; empty: the active pane's
    void show(const PolicyCard& card, const QString& where);

    Workbench& m_workbench;
    StepDriver& m_steps;
    QLabel *m_name, *m_paper, *m_text, *m_checks;
    QWidget* m_facts;
    FactGrid* m_now;
    std::tuple<QString, QFont, QFont, int> m_shown; ///< Markdown, fonts, and columns of the formulas
};

/// Fits the formulas of a listing into a number of columns. A listing that fits stays as it is. Otherwise columns are
/// stacked, and a formula that is still too long continues with an indent: broken between sentences, before a relation
/// or an operator, and last inside brackets. A line never ends in an operator.
QStringList formulaLines(const QStringList& listing, int columns);

/// Markdown whose indented listings are fitted into so many columns.
QString withFormulaLines(const QString& markdown, int columns);

/// Markdown in which no line breaks between "Eq." and its number.
QString withUnbrokenNumbers(const QString& markdown);

} // namespace kvscope
