#pragma once

#include "app/window/canvas/view_canvas.h"

#include <QFrame>

namespace kvscope {

class ElidedLabel;

/// A view that stands for all panes: its canvas, and a header of 28 with its name, its options as chips and its
/// finding, which becomes the title bar of the dock that shows it.
class ViewDock : public QFrame {
    Q_OBJECT

public:
    ViewDock(Workbench& workbench, const View& view, const TextService& text, QWidget* parent = nullptr);
    ViewCanvas* canvas() const { return m_canvas; }
    QWidget* header() const { return m_header; }

private:
    void refresh();

    Workbench& m_workbench;
    ViewCanvas* m_canvas;
    ElidedLabel* m_finding;
    QWidget* m_header = nullptr;
};

} // namespace kvscope
