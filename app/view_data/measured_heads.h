#pragma once

#include "app/view_data/view_data_maker.h"

namespace kvscope {

/// The numbers of a measure (core/metrics/measures.h) of a measured result: [Hq] or [Hkv], by the shape on its card.
/// Throws Error where the result or the capture cannot answer.
std::vector<double> headValues(const LayerRunner& runner, const RunResult& result, const MeasureCard& measure, const Checkpoint& checkpoint);
/// Their mean over the heads that a view looks at: the request's KV head with the query heads that read it, or the whole
/// layer. Throws Error where no head has a number.
double meanOverHeads(const LayerRunner& runner, const RunResult& result, const MeasureCard& measure, const ViewDataRequest& request,
                     bool wholeLayer, const Checkpoint& checkpoint);

} // namespace kvscope
