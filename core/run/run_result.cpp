// Small questions to a result: what it stores, what its kept sets are to a measure, and whether it was measured.
#include "core/run/run.h"

#include "core/base/error.h"

namespace kvscope {

namespace {

std::uint64_t widthOf(StoredType type) {
    return type == StoredType::Float32 ? 4 : 2;
}

} // namespace

const Fidelity& requireFidelity(const RunResult& result) {
    if (result.fidelity)
        return *result.fidelity;
    const bool explained = !result.notes.empty() && result.notes.back().starts_with("not measured");
    throw Error({explained ? result.notes.back() : "the result was not measured",
                 "layer " + std::to_string(result.request.layer.value),
                 {},
                 result.request.capture->info().path});
}

std::vector<WeightedSet> weightedSetsOf(const Selection& selection) {
    std::vector<WeightedSet> sets;
    for (const HeadSelection& head : selection.heads)
        sets.push_back({head.kept, head.numeratorWeights, {}, head.denominatorWeights});
    return sets;
}

std::uint64_t storedBytes(const RunResult& result) {
    const CaptureInfo& info = result.request.capture->info();
    std::uint64_t tokens = 0;
    for (const HeadSelection& head : result.selection.heads)
        tokens += head.kept.size();
    return tokens * static_cast<std::uint64_t>(info.headDim + info.valueDim) *
           widthOf(info.layerInfo(result.request.layer).storedType);
}

} // namespace kvscope
