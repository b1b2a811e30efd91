// Errors are measured per query head; panes, lists and the head picker speak of KV heads, because that is what a policy
// chooses for.
#include "app/session/head_means.h"

#include <cmath>
#include <limits>

namespace kvscope {

namespace {

double meanOverGroup(const std::vector<double>& perQueryHead, const std::vector<std::int32_t>& kvOfQ, KvHeadIndex head) {
    double sum = 0;
    int count = 0;
    for (std::size_t q = 0; q < perQueryHead.size() && q < kvOfQ.size(); ++q)
        if (kvOfQ[q] == head.value && !std::isnan(perQueryHead[q])) {
            sum += perQueryHead[q];
            ++count;
        }
    return count > 0 ? sum / count : std::numeric_limits<double>::quiet_NaN();
}

} // namespace

double meanErrorOf(const RunResult& result, const CaptureReader& capture, KvHeadIndex head) {
    return result.fidelity ? meanOverGroup(result.fidelity->meanOutputError,
                                           capture.info().layerInfo(result.request.layer).kvOfQ, head)
                           : std::numeric_limits<double>::quiet_NaN();
}

double meanMassOf(const RunResult& result, const CaptureReader& capture, KvHeadIndex head) {
    return result.fidelity ? meanOverGroup(result.fidelity->meanRetainedMass,
                                           capture.info().layerInfo(result.request.layer).kvOfQ, head)
                           : std::numeric_limits<double>::quiet_NaN();
}

} // namespace kvscope
