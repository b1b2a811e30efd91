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

} // namespace

void rowNorms(const DeviceMemory& memory, const DeviceRows& keys, float* norms) {
    rowNorms(keys, norms, memory.stream());
}

void meanAnchor(const DeviceMemory& memory, const DeviceRows& keys, AnchorKind kind, float* anchors) {
    assert(kind != AnchorKind::Median && keys.rows > 0);
    const auto scratch = memory.allocate(anchorScratchBytes(keys));
    meanAnchor(keys, kind == AnchorKind::NormalisedMean, scratch.get(), anchors, memory.stream());
}

void similarity(const DeviceMemory& memory, const DeviceRows& keys, const float* anchors, SimilarityMetric metric,
                float* similarities) {
    similarity(keys, anchors, metricOf(metric), similarities, memory.stream());
}

} // namespace kvscope::gpu
