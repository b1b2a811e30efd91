#pragma once

#include "core/run/run.h"

#include <optional>
#include <span>

namespace kvscope {

/// Mean over the query heads of this KV head, or over all heads, of numbers [Hq]. NaN are left out; NaN if none is
/// left.
double meanOverHeads(std::span<const double> perQueryHead, const LayerInfo& layer, std::optional<KvHeadIndex> head);

/// Mean output error over the query heads of one GQA group; NaN where nothing was measured.
double meanErrorOf(const RunResult& result, const CaptureReader& capture, KvHeadIndex head);
double meanMassOf(const RunResult& result, const CaptureReader& capture, KvHeadIndex head);

} // namespace kvscope
