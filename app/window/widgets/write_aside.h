#pragma once

#include "app/workbench/workbench.h"

#include <QString>

#include <functional>

class QWidget;

namespace kvscope {

class NoticeStrip;

/// Runs `write`, which writes the file `path`, in a thread of its own and waits for it. If that takes long, the window
/// goes on painting, and a dialog offers to stop waiting: then Error is thrown, and the file is written later, whole,
/// or never. Throws what `write` throws.
void writeAside(QWidget* window, const QString& path, std::function<void()> write);

/// Asks where to write a file; empty: nowhere. A name without a suffix gets that of `proposed` before the dialog asks
/// whether an existing file is to be replaced.
QString fileToWrite(QWidget* parent, const QString& title, const QString& proposed, const QString& filter);

/// Writes a file in the background: `work` runs on a worker, what it returns runs on the owner's thread (empty: nothing
/// is left to do there). Progress with a way to cancel, success and failure are notices; a file that the session of
/// `workbench` reads is refused. Writing the same file again replaces the write that is under way.
void submitWriting(Workbench& workbench, NoticeStrip& notices, const QString& path,
                   std::function<std::function<void()>(const Checkpoint&)> work);

} // namespace kvscope
