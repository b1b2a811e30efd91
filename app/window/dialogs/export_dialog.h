#pragma once

#include "app/workbench/workbench.h"

class QWidget;

namespace kvscope {

class NoticeStrip;
class ViewCanvas;

/// Asks for size, theme and file, and writes the figure (PNG, SVG, PDF) or the kept list (JSON, CSV, HDF5) with its
/// regenerating command. Success and failure are notices.
void showExportDialog(QWidget& window, Workbench& workbench, ViewCanvas& canvas, NoticeStrip& notices);

} // namespace kvscope
