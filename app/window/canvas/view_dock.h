#pragma once

#include "app/window/canvas/view_canvas.h"

#include <QFrame>

namespace kvscope {

class ElidedLabel;

/// A view that shows all panes: its canvas, and a header of 28 pixels with name, options as chips and finding, which is
/// the title bar of its dock.
class ViewDock : public QFrame {
    Q_OBJECT

public:
    ViewDock(Workbench& workbench, const View& view, const TextService& text, QWidget* parent = nullptr);
    ViewCanvas* canvas() const { return m_canvas; }
    QWidget* header() const { return m_header; }

private:
    ViewCanvas* m_canvas;
    ElidedLabel* m_finding;
    QWidget* m_header = nullptr;
};

} // namespace kvscope
