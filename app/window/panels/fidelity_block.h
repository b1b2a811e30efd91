#pragma once

#include "app/session/workbench.h"
#include "app/window/panels/fact_grid.h"

class QLabel;

namespace kvscope {

/// The lead number of the active pane and the facts below it.
class FidelityBlock : public QWidget {
    Q_OBJECT

public:
    explicit FidelityBlock(Workbench& workbench, QWidget* parent = nullptr);

private:
    void refresh();
    FactGrid::Facts fidelityFacts(const PaneData& pane, const ViewInput& input) const;

    Workbench& m_workbench;
    QLabel *m_judged, *m_lead, *m_notes;
    FactGrid* m_facts;
};

} // namespace kvscope
