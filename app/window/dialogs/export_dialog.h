#pragma once

#include "app/window/canvas/view_canvas.h"
#include "app/window/canvas/view_table_model.h"
#include "app/workbench/workbench.h"

#include <QDialog>

namespace kvscope {

class NoticeStrip;
struct SavedLive;

/// Asks for size, theme and file, and writes the figure (PNG, SVG, PDF) or the kept list (JSON, CSV, HDF5) with its
/// regenerating command. Success and failure are notices. `first`: the workbench of the window, also where the
/// canvas shows a second capture: its session names the files of both, and none of them is replaced.
void showExportDialog(QWidget& window, Workbench& first, ViewCanvas& canvas, NoticeStrip& notices,
                      const SavedLive& saved);

/// The table behind a canvas, kept up to date while the dialog is open. The title names the pane, and the capture while
/// two are compared.
class DataDialog : public QDialog {
    Q_OBJECT

public:
    DataDialog(Workbench& workbench, ViewCanvas& canvas, QWidget* parent = nullptr);

private:
    ViewTableModel m_model;
};

} // namespace kvscope
