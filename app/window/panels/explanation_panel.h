#pragma once

#include "app/session/workbench.h"

#include <QWidget>

class QLabel;

namespace kvscope {

/// What the active pane's policy does: the card's own text, with its paper.
class ExplanationPanel : public QWidget {
    Q_OBJECT

public:
    explicit ExplanationPanel(Workbench& workbench, QWidget* parent = nullptr);

private:
    void refresh();

    Workbench& m_workbench;
    QLabel *m_name, *m_paper, *m_text;
};

} // namespace kvscope
