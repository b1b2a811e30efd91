#pragma once

#include <string>

namespace kvscope {

/// From now on a crash (a bad access, an abort, an unknown instruction) writes signal and stack into `file` and says so
/// in one line on standard error; then the process ends by that signal as before. Everything is prepared here, because
/// a handler may neither allocate nor lock.
void reportCrashes(const std::string& file);

} // namespace kvscope
