#include "tests/support/cpu_runner.h"

#include "core/engine/engine.h"

namespace kvscope::testing {

LayerRunner cpuRunner(int threads) { return LayerRunner(makeCpuEngine(threads)); }

} // namespace kvscope::testing
