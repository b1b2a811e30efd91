#pragma once

namespace kvscope::live {

/// All workers have the niceness of the thread that calls this first, or else of the one that starts the first of them:
/// started by a thread that gave its priority away, a worker would compute slower than the window that waits for it.
void keepNiceness();

} // namespace kvscope::live
