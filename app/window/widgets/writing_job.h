#pragma once

#include "app/workbench/workbench.h"

#include <functional>

namespace kvscope {

class NoticeStrip;

/// Writes a file beside the window's own work: `work` runs on a worker, what it returns runs on the owner's thread
/// (empty: nothing is left to do there). Progress with a way to cancel, success and failure are strips. Writing the
/// same file again takes the place of what is under way.
void submitWriting(Workbench& workbench, NoticeStrip& notices, const QString& path,
                   std::function<std::function<void()>(const Checkpoint&)> work);

} // namespace kvscope
