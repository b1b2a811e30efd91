#pragma once

#include "core/metrics/measures.h"
#include "core/run/run.h"

#include <optional>
#include <vector>

namespace kvscope {

/// The numbers of a measure (core/metrics/measures.h) of a measured result: [Hq] or [Hkv], by the shape on its card.
/// Throws Error where the result or the capture cannot answer.
std::vector<double> headValues(const LayerRunner& runner, const RunResult& result, const MeasureCard& measure,
                               const Checkpoint& checkpoint);
/// Whether headValues only reads what every measured result holds, and computes nothing.
bool comesWithResults(const MeasureCard& measure);
/// The same with one number per KV head: those of query heads as the mean over the ones that read it, NaN left out.
std::vector<double> kvHeadValues(const LayerRunner& runner, const RunResult& result, const MeasureCard& measure,
                                 const Checkpoint& checkpoint);
/// The run that a measure of the layer itself is asked of, whatever the panes do: it keeps everything.
RunRequest wholeCache(const std::shared_ptr<const CaptureReader>& capture, LayerIndex layer, const Cut& cut);
/// Throws Error, with a sentence short enough for a narrow panel, where the capture cannot answer at all. Computes
/// nothing.
void checkCaptureHas(const CaptureReader& capture, LayerIndex layer, MeasureNeed need);
/// Their mean over the heads that a view looks at: one KV head with the query heads that read it, or the whole layer.
/// Throws Error where no head has a number.
double meanOverHeads(const LayerRunner& runner, const RunResult& result, const MeasureCard& measure,
                     std::optional<KvHeadIndex> head, const Checkpoint& checkpoint);

} // namespace kvscope
