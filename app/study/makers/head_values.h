#pragma once

#include "app/study/makers/view_data_maker.h"

namespace kvscope {

/// Mean over query heads of numbers [Hq]: those that read the request's KV head, or all of the layer.
double meanOverHeads(const std::vector<double>& perQueryHead, const ViewDataRequest& request, bool wholeLayer);
/// Share of the tokens before the cut that is kept: by the request's KV head, or the mean over all of them.
double keptShareOf(const RunResult& result, const ViewDataRequest& request, bool wholeLayer);

} // namespace kvscope
