// Norms, anchors and similarities: one or two launches each.
#include "gpu/kernels/key_similarity.h"
#include "gpu/primitives/primitives.h"

#include <cassert>

namespace kvscope::gpu {

namespace {

Metric metricOf(SimilarityMetric metric) {
    return metric == SimilarityMetric::Cosine ? Metric::Cosine
           : metric == SimilarityMetric::Dot  ? Metric::Dot
                                              : Metric::Euclidean;
}

/// [heads, columns] numbers of the kernels that work(address) enqueues; `call` holds the other parts.
template <class Work> HostTensor table(CallMemory& call, std::int64_t columns, std::int64_t heads, const Work& work) {
    float* numbers;
    call.result(numbers, static_cast<std::size_t>(heads * columns));
    call.place();
    work(numbers);
    call.fetch();
    return call.read(numbers, {heads, columns});
}

} // namespace

HostTensor rowNorms(const DeviceMemory& memory, const DeviceRows& keys) {
    CallMemory call(memory);
    return table(call, keys.rows, keys.heads, [&](float* norms) { rowNorms(keys, norms, memory.stream()); });
}

HostTensor meanAnchor(const DeviceMemory& memory, const DeviceRows& keys, AnchorKind kind) {
    assert(kind != AnchorKind::Median && keys.rows > 0);
    CallMemory call(memory);
    unsigned char* scratch;
    call.scratch(scratch, anchorScratchBytes(keys));
    return table(call, keys.width, keys.heads, [&](float* anchors) {
        meanAnchor(keys, kind == AnchorKind::NormalisedMean, scratch, anchors, memory.stream());
    });
}

HostTensor similarity(const DeviceMemory& memory, const DeviceRows& keys, const HostTensor& anchors,
                      SimilarityMetric metric) {
    CallMemory call(memory);
    const float* to;
    call.list(to, anchors.data);
    return table(call, keys.rows, keys.heads,
                 [&](float* scores) { similarity(keys, to, metricOf(metric), scores, memory.stream()); });
}

} // namespace kvscope::gpu
