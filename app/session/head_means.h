#pragma once

#include "core/run/run.h"

namespace kvscope {

/// Means over the query heads that read one KV head; NaN where nothing was measured.
double meanErrorOf(const RunResult& result, const CaptureReader& capture, KvHeadIndex head);
double meanMassOf(const RunResult& result, const CaptureReader& capture, KvHeadIndex head);

} // namespace kvscope
