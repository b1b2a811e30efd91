// The heads that a number is a mean over, the same for every kind of data.
#include "app/study/makers/head_values.h"

#include "core/run/head_means.h"

namespace kvscope {

double meanOverHeads(const std::vector<double>& perQueryHead, const ViewDataRequest& request, bool wholeLayer) {
    const std::optional<KvHeadIndex> head = wholeLayer ? std::nullopt : std::optional(request.kvHead);
    return meanOverHeads(perQueryHead, request.capture->info().layerInfo(request.layer), head);
}

double keptShareOf(const RunResult& result, const ViewDataRequest& request, bool wholeLayer) {
    const std::vector<HeadSelection>& heads = result.selection.heads;
    double kept = 0, count = 0;
    for (std::size_t head = 0; head < heads.size(); ++head)
        if (wholeLayer || std::cmp_equal(head, request.kvHead.value)) {
            kept += heads[head].attendedTokens();
            count += 1;
        }
    return kept / count / static_cast<double>(result.visible);
}

} // namespace kvscope
