#pragma once

#include "app/window/canvas/view_canvas.h"

#include <QDialog>

class QLineEdit;

namespace kvscope {

/// The range that a view shows, typed: from and to in both directions. Not modal; a wrong entry turns its field red and
/// changes nothing.
class RangeDialog : public QDialog {
    Q_OBJECT

public:
    RangeDialog(Workbench& workbench, ViewCanvas& canvas, QWidget* parent);

private:
    void apply();

    Workbench& m_workbench;
    std::string m_view;
    QLineEdit *m_xFrom, *m_xTo, *m_yFrom, *m_yTo;
};

} // namespace kvscope
