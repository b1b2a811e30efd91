#pragma once

#include "core/run/run.h"

namespace kvscope::testing {

/// A runner on the CPU engine. Tests that include this instead of core/engine/engine.h stay as they are when a
/// primitive changes. `threads`: 0 takes all cores.
LayerRunner cpuRunner(int threads);

} // namespace kvscope::testing
