#pragma once

#include "app/session/workbench.h"

#include <QWidget>

class QGridLayout;
class QLabel;

namespace kvscope {

/// The lead number of the active pane, the facts below it, and why the chosen token is kept or evicted.
class FidelityBlock : public QWidget {
    Q_OBJECT

public:
    explicit FidelityBlock(Workbench& workbench, QWidget* parent = nullptr);

private:
    using Facts = std::vector<std::pair<QString, QString>>;
    void refresh();
    void showFacts(QGridLayout* grid, const Facts& facts);
    Facts fidelityFacts(const PaneData& pane, const ViewInput& input) const;
    void refreshStanding(const ViewInput& input, const PaneData* pane);

    Workbench& m_workbench;
    QLabel *m_judged, *m_lead, *m_notes, *m_token, *m_verdict;
    QGridLayout *m_facts, *m_standing;
    QWidget* m_standingBox;
};

} // namespace kvscope
