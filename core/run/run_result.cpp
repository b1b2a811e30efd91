// Derived facts of a result: stored bytes, kept sets for measures, whether it was measured.
#include "core/run/run.h"

#include "core/base/error.h"
#include "core/capture/capture.h"
#include "core/metrics/fidelity.h"
#include "core/run/stored_rows.h"

namespace kvscope {

namespace {

std::uint64_t widthOf(StoredType type) { return type == StoredType::Float32 ? 4 : 2; }

} // namespace

SharedTable::operator const HostTensor&() const {
    static const HostTensor none;
    return m_table ? *m_table : none;
}

const Fidelity& requireFidelity(const RunResult& result) {
    if (result.fidelity) return *result.fidelity;
    const bool explained = !result.notes.empty() && result.notes.back().starts_with("not measured");
    throw Error({explained ? result.notes.back() : "the result was not measured",
                 "layer " + std::to_string(result.request.layer.value), "", result.request.capture->info().path});
}

std::vector<WeightedSet> weightedSetsOf(const Selection& selection, std::span<const std::int32_t> gqaGroupOf) {
    std::vector<WeightedSet> sets;
    for (const HeadSelection& head : selection.heads)
        sets.push_back({head.kept, head.numeratorWeights, {}, head.denominatorWeights});
    if (!selection.perQueryHead() || gqaGroupOf.size() <= sets.size()) return sets;
    std::vector<WeightedSet> own;
    for (std::size_t head = 0; head < gqaGroupOf.size(); ++head) {
        const auto kv = static_cast<std::size_t>(gqaGroupOf[head]);
        own.push_back(sets[kv]);
        own.back().numerator = selection.heads[kv].attendedBy(static_cast<std::int32_t>(head));
    }
    return own;
}

std::uint64_t storedBytes(const RunResult& result) {
    const CaptureInfo& info = result.request.capture->info();
    std::uint64_t numbers = 0;
    for (const HeadSelection& head : result.selection.heads) {
        const auto [keys, values] = storedRowsOf(head);
        numbers += keys * static_cast<std::uint64_t>(info.headDim) + values * static_cast<std::uint64_t>(info.valueDim);
    }
    return numbers * widthOf(info.layerInfo(result.request.layer).storedType);
}

} // namespace kvscope
