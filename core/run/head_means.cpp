// Errors are measured per query head; panes, lists and curves show KV heads, for which policies choose.
#include "core/run/head_means.h"

#include "core/capture/capture.h"
#include "core/metrics/fidelity.h"
#include "core/policies/balance/balance_rounds.h"
#include "core/run/record_results.h"

#include <algorithm>
#include <limits>

namespace kvscope {

namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

} // namespace

double meanOverHeads(std::span<const double> perQueryHead, const LayerInfo& layer, std::optional<KvHeadIndex> head) {
    std::vector<double> chosen;
    for (std::size_t q = 0; q < perQueryHead.size(); ++q)
        if (!head || layer.gqaGroupOf[q] == head->value) chosen.push_back(perQueryHead[q]);
    return meanOfNumbers(chosen);
}

double meanErrorOf(const RunResult& result, const CaptureReader& capture, KvHeadIndex head) {
    return result.fidelity
               ? meanOverHeads(result.fidelity->meanOutputError, capture.info().layerInfo(result.request.layer), head)
               : kNaN;
}

double meanMassOf(const RunResult& result, const CaptureReader& capture, KvHeadIndex head) {
    return result.fidelity
               ? meanOverHeads(result.fidelity->meanRetainedMass, capture.info().layerInfo(result.request.layer), head)
               : kNaN;
}

double meanAttendedTokens(const RunResult& result, std::optional<KvHeadIndex> head) {
    std::vector<double> kept;
    for (std::int32_t at = 0; at < std::ssize(result.selection.heads); ++at)
        if ((!head || head->value == at) && !leavesOut(result, at))
            kept.push_back(result.selection.heads[at].attendedTokens());
    return meanOfNumbers(kept);
}

double keptShareOf(const RunResult& result, std::optional<KvHeadIndex> head) {
    return meanAttendedTokens(result, head) / static_cast<double>(result.visible);
}

bool balancedNothing(const RunResult& result) {
    return std::ranges::find(result.notes, kNothingBalanced) != result.notes.end();
}

} // namespace kvscope
