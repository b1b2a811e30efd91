#pragma once

#include "app/window/panels/fact_grid.h"
#include "app/workbench/workbench.h"

class QLabel;

namespace kvscope {

class CaptureCaption;
class LiveNumber;

/// The active pane's output error and the facts below it; with a second capture those of both.
class FidelityBlock : public QWidget {
    Q_OBJECT

public:
    explicit FidelityBlock(Workbench& workbench, QWidget* parent = nullptr);

protected:
    void showEvent(QShowEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;

private:
    QWidget* buildWarning();
    void refresh();
    void refreshSecond();
    FactGrid::Facts fidelityFacts(const PaneData& pane, const ViewInput& input) const;
    /// Title of the warning when the head keeps another number of tokens than the budget asks for; else empty.
    QString budgetWarning(const PaneData& pane, const ViewInput& input) const;

    Workbench& m_workbench;
    LiveNumber* m_lead;
    QLabel *m_evaluationNote, *m_notes, *m_warningTitle, *m_warningText;
    QWidget* m_warning; ///< prominent, because the budget was not met
    FactGrid *m_facts, *m_secondFacts;
    CaptureCaption *m_caption, *m_secondCaption; ///< while there are two captures
};

} // namespace kvscope
