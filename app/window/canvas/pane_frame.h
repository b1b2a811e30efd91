#pragma once

#include "app/window/canvas/view_canvas.h"
#include "app/workbench/workbench.h"

#include <QFrame>

class QLabel;

namespace kvscope {

class PaneHeader;

/// One policy pane: header, canvas, and over the canvas why there is no picture.
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

private:
    void refresh();
    void placeError();

    Workbench& m_workbench;
    int m_pane;
    PaneHeader* m_header;
    ViewCanvas* m_canvas;
    QLabel* m_error;
};

} // namespace kvscope
