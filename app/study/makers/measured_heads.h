#pragma once

#include "app/study/makers/view_data_maker.h"
#include "core/metrics/measures.h"
#include "core/run/run.h"

#include <optional>
#include <vector>

namespace kvscope {

/// The values of a measure (core/metrics/measures.h) for a measured result: [Hq] or [Hkv], by the shape on its card.
/// Throws Error where the result or the capture lacks the data.
std::vector<double> headValues(const LayerRunner& runner, const RunResult& result, const MeasureCard& measure,
                               const Checkpoint& checkpoint);
/// Whether headValues only reads the result and computes nothing.
bool comesWithResults(const MeasureCard& measure);
/// The same per KV head: values of query heads are averaged over the GQA group, NaN left out.
std::vector<double> kvHeadValues(const LayerRunner& runner, const RunResult& result, const MeasureCard& measure,
                                 const Checkpoint& checkpoint);
/// The run for a measure of the layer itself: it keeps everything.
RunRequest wholeCache(const std::shared_ptr<const CaptureReader>& capture, LayerIndex layer, const Cut& cut);
/// Throws Error, with a sentence short enough for a narrow panel, where the capture lacks the measure's data. Computes
/// nothing.
void checkCaptureHas(const CaptureReader& capture, LayerIndex layer, MeasureNeed need);
/// What the option `heads` asks for: the shown KV head, or nothing for the whole layer.
std::optional<KvHeadIndex> measuredHead(const ViewDataRequest& request);
/// "KV head 1" or "all heads of the layer".
std::string measuredWords(std::optional<KvHeadIndex> head);
/// Mean over the heads that a view shows: one KV head with its GQA group, or the whole layer. Throws Error where no
/// head has a number.
double meanOverHeads(const LayerRunner& runner, const RunResult& result, const MeasureCard& measure,
                     std::optional<KvHeadIndex> head, const Checkpoint& checkpoint);

} // namespace kvscope
