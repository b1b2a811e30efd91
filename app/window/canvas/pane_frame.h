#pragma once

#include "app/window/canvas/view_canvas.h"
#include "app/workbench/workbench.h"

#include <QFrame>

namespace kvscope {

class PaneHeader;

/// One policy pane: header and canvas.
class PaneFrame : public QFrame {
    Q_OBJECT

public:
    PaneFrame(Workbench& workbench, const View& view, int pane, const TextService& text, QWidget* parent = nullptr);

    PaneHeader* header() const { return m_header; }
    ViewCanvas* canvas() const { return m_canvas; }
    int pane() const { return m_pane; }
    /// While two captures are compared, only the panes of one of them mark the active pane.
    void setInTurn(bool isInTurn);

protected:
    void paintEvent(QPaintEvent* event) override;

private:
    void followActive();

    Workbench& m_workbench;
    int m_pane;
    bool m_isInTurn = true, m_isMarked = false;
    PaneHeader* m_header;
    ViewCanvas* m_canvas;
};

} // namespace kvscope
