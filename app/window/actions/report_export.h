#pragma once

#include "app/workbench/workbench.h"

class QWidget;

namespace kvscope {

class NoticeStrip;

/// Asks for a file and writes the report of the session there on a worker; progress, success and failure are notices.
/// The session as it is now: what is changed while it is written is in the next one.
void exportReport(QWidget& window, Workbench& workbench, NoticeStrip& notices);

} // namespace kvscope
