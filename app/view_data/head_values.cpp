// The heads that a number is a mean over, the same for every kind of data.
#include "app/view_data/head_values.h"

namespace kvscope {

double meanOverHeads(const std::vector<double>& perQueryHead, const ViewDataRequest& request, bool wholeLayer) {
    const auto& kvOfQ = request.capture->info().layerInfo(request.layer).kvOfQ;
    std::vector<double> chosen;
    for (std::size_t q = 0; q < perQueryHead.size(); ++q)
        if (wholeLayer || kvOfQ[q] == request.kvHead.value)
            chosen.push_back(perQueryHead[q]);
    return meanOfNumbers(chosen);
}

double keptShareOf(const RunResult& result, const ViewDataRequest& request, bool wholeLayer) {
    const std::vector<HeadSelection>& heads = result.selection.heads;
    double kept = 0, count = 0;
    for (std::size_t head = 0; head < heads.size(); ++head)
        if (wholeLayer || std::cmp_equal(head, request.kvHead.value)) {
            kept += static_cast<double>(heads[head].kept.size());
            count += 1;
        }
    return kept / count / static_cast<double>(result.visible);
}

} // namespace kvscope
