#pragma once

#include "app/window/canvas/view_canvas.h"
#include "app/window/canvas/view_table_model.h"

#include <QDialog>

namespace kvscope {

/// The table behind a canvas, kept up to date while it is open.
class DataDialog : public QDialog {
    Q_OBJECT

public:
    DataDialog(Workbench& workbench, ViewCanvas& canvas, QWidget* parent = nullptr);

private:
    ViewTableModel m_model;
};

} // namespace kvscope
