#pragma once

#include "app/window/panels/fact_grid.h"
#include "app/workbench/workbench.h"

class QLabel;

namespace kvscope {

class ElidedLabel;

/// Why the active pane keeps or evicts a token: rank, score and its parts, margin, the budget at which it flips.
class DecisionBlock : public QWidget {
    Q_OBJECT

public:
    explicit DecisionBlock(Workbench& workbench, QWidget* parent = nullptr);

private:
    void refresh();

    Workbench& m_workbench;
    QLabel *m_hint, *m_verdict;
    ElidedLabel* m_token;
    FactGrid* m_facts;
};

} // namespace kvscope
