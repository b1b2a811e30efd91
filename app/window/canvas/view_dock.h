#pragma once

#include "app/window/canvas/view_canvas.h"

#include <QFrame>

namespace kvscope {

class ElidedLabel;

/// A view that stands for all panes: a header of 28 with its name, its options as chips and its finding, a canvas below.
class ViewDock : public QFrame {
    Q_OBJECT

public:
    ViewDock(Workbench& workbench, const View& view, const TextService& text, QWidget* parent = nullptr);
    ViewCanvas* canvas() const { return m_canvas; }

private:
    void refresh();

    Workbench& m_workbench;
    ViewCanvas* m_canvas;
    ElidedLabel* m_finding;
};

} // namespace kvscope
