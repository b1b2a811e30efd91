// Norms, anchors, similarities and top-k: one or two launches each.
#include "core/base/error.h"
#include "gpu/kernels/key_similarity.h"
#include "gpu/kernels/top_k.h"
#include "gpu/primitives/primitives.h"

#include <algorithm>
#include <cassert>
#include <string>

namespace kvscope::gpu {

namespace {

Metric metricOf(SimilarityMetric metric) {
    return metric == SimilarityMetric::Cosine ? Metric::Cosine
           : metric == SimilarityMetric::Dot  ? Metric::Dot
                                              : Metric::Euclidean;
}

void refuseNaN(const std::vector<std::int64_t>& nanRows) {
    for (std::size_t h = 0; h < nanRows.size(); ++h)
        if (nanRows[h] >= 0)
            throw Error({"the score of token " + std::to_string(nanRows[h]) + " in head " + std::to_string(h) +
                             " is not a number (NaN)",
                         "scores",
                         "look for NaN or infinity in the capture's keys and queries",
                         {}});
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

std::vector<TopKHead> topK(const DeviceMemory& memory, const float* scores, std::int64_t heads, std::int64_t m,
                           const TopKRequest& request) {
    assert(static_cast<std::int64_t>(request.counts.size()) == heads);
    const auto h = static_cast<std::size_t>(heads);
    const std::int64_t most = heads > 0 ? *std::max_element(request.counts.begin(), request.counts.end()) : 0;
    const DeviceList<std::int64_t> counts(memory, request.counts), nanRows(memory, h);
    const DeviceList<std::int32_t> kept(memory, h * static_cast<std::size_t>(most));
    const DeviceList<float> margins(memory, h);
    topK({.scores = scores,
          .heads = heads,
          .rows = m,
          .counts = counts.data(),
          .protectFirst = request.protectFirst,
          .protectLast = request.protectLast,
          .kept = kept.data(),
          .keptStride = most,
          .margins = margins.data(),
          .nanRows = nanRows.data()},
         memory.stream());
    refuseNaN(nanRows.read(memory));
    const std::vector<std::int32_t> rows = kept.read(memory);
    const std::vector<float> smallest = margins.read(memory);
    std::vector<TopKHead> result(h);
    for (std::size_t i = 0; i < h; ++i) {
        const auto first = rows.begin() + static_cast<std::ptrdiff_t>(i) * most;
        result[i] = {{first, first + request.counts[i]}, smallest[i]};
    }
    return result;
}

} // namespace kvscope::gpu
