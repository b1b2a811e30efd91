#pragma once

#include "app/window/panels/fact_grid.h"
#include "app/workbench/workbench.h"

class QLabel;

namespace kvscope {

/// The lead number of the active pane and the facts below it.
class FidelityBlock : public QWidget {
    Q_OBJECT

public:
    explicit FidelityBlock(Workbench& workbench, QWidget* parent = nullptr);

private:
    QWidget* buildWarning();
    void refresh();
    FactGrid::Facts fidelityFacts(const PaneData& pane, const ViewInput& input) const;
    /// Title of the warning where the head keeps another number than was asked for, else empty.
    QString budgetWarning(const PaneData& pane, const ViewInput& input) const;

    Workbench& m_workbench;
    QLabel *m_evaluationNote, *m_lead, *m_notes, *m_warningTitle, *m_warningText;
    QWidget* m_warning; ///< as loud as what it says: the budget was not kept
    FactGrid* m_facts;
};

} // namespace kvscope
