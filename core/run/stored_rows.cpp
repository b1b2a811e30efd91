// The rows that a policy says it stores, or the number of kept tokens if it says nothing.
#include "core/run/stored_rows.h"

#include "core/capture/capture.h"
#include "core/metrics/fidelity.h"
#include "core/run/record_results.h"

#include <algorithm>
#include <iterator>
#include <vector>

namespace kvscope {

namespace {

std::uint64_t statedOr(std::int64_t stated, std::size_t counted) {
    return stated < 0 ? counted : static_cast<std::uint64_t>(stated);
}

} // namespace

StoredRows storedRowsOf(const HeadSelection& head) {
    std::size_t kept = head.queryHeads.empty() ? head.kept.size() : 0;
    for (const QueryHeadSet& own : head.queryHeads) kept += own.kept.size();
    const auto withoutValue = std::ranges::count(head.numeratorWeights, 0.0F); // not in the numerator
    return {statedOr(head.storedKeys, kept),
            statedOr(head.storedValues, kept - static_cast<std::size_t>(withoutValue))};
}

double storedTokens(const HeadSelection& head, const CaptureInfo& info) {
    const auto [keys, values] = storedRowsOf(head);
    const double numbers = static_cast<double>(keys) * info.headDim + static_cast<double>(values) * info.valueDim;
    return numbers / (info.headDim + info.valueDim);
}

double meanStoredTokens(const RunResult& result, std::optional<KvHeadIndex> head) {
    std::vector<double> stored;
    for (std::int32_t at = 0; at < std::ssize(result.selection.heads); ++at)
        if ((!head || head->value == at) && !leavesOut(result, at))
            stored.push_back(storedTokens(result.selection.heads[at], result.request.capture->info()));
    return meanOfNumbers(stored);
}

std::optional<double> storedOtherwise(const RunResult& result, KvHeadIndex head) {
    const HeadSelection& chosen = result.selection.heads[head.value];
    const double stored = storedTokens(chosen, result.request.capture->info());
    const bool differs = chosen.queryHeads.empty() && stored != chosen.attendedTokens();
    return differs ? std::optional(stored) : std::nullopt;
}

} // namespace kvscope
