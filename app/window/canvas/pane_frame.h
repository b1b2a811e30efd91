#pragma once

#include "app/window/canvas/view_canvas.h"
#include "app/workbench/workbench.h"

#include <QFrame>
#include <QTimer>

class QLabel;

namespace kvscope {

class PaneHeader;

/// One policy pane: header, canvas, and over the canvas the states "computing" and "failed".
class PaneFrame : public QFrame {
    Q_OBJECT

public:
    PaneFrame(Workbench& workbench, const View& view, int pane, const TextService& text, QWidget* parent = nullptr);

    PaneHeader* header() const { return m_header; }
    ViewCanvas* canvas() const { return m_canvas; }
    int pane() const { return m_pane; }

protected:
    void paintEvent(QPaintEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;

private:
    void refresh();
    void placeOverlays();
    void setBusyShown(bool shown);

    Workbench& m_workbench;
    int m_pane;
    PaneHeader* m_header;
    ViewCanvas* m_canvas;
    QLabel *m_error, *m_busy;
    QTimer m_busyDelay;
};

} // namespace kvscope
