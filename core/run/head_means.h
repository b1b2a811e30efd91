#pragma once

#include "core/run/run.h"

#include <optional>
#include <span>

namespace kvscope {

/// Mean over query heads of numbers [Hq]: those that read this KV head, or all without one. NaN are left out; NaN where
/// nothing is left.
double meanOverHeads(std::span<const double> perQueryHead, const LayerInfo& layer, std::optional<KvHeadIndex> head);

/// Means over the query heads that read one KV head; NaN where nothing was measured.
double meanErrorOf(const RunResult& result, const CaptureReader& capture, KvHeadIndex head);
double meanMassOf(const RunResult& result, const CaptureReader& capture, KvHeadIndex head);

} // namespace kvscope
