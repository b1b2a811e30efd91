#pragma once

#include "app/workbench/workbench.h"

class QWidget;

namespace kvscope {

class NoticeStrip;

/// Asks for a file and writes the report of the session to it on a worker; progress, success and failure are notices.
/// The report describes the session at the time of the call.
void exportReport(QWidget& window, Workbench& workbench, NoticeStrip& notices);

/// Likewise the handout of the open lesson; nothing without one.
void exportHandout(QWidget& window, Workbench& workbench, NoticeStrip& notices);

} // namespace kvscope
