#pragma once

#include "core/capture/memory_capture.h"

#include <optional>

namespace kvscope {

/// One layer as numbers in memory: keys and values [KV heads, n, d], queries [query heads, last w tokens, d].
struct LayerArrays {
    HostTensor keys, values;
    std::optional<HostTensor> queries, keysPreRope;
    std::vector<float> sinks;            ///< [query heads], or empty: none
    std::vector<std::int32_t> groups;    ///< [query heads] KV heads, or empty: equal groups, in order
    std::vector<std::int64_t> positions; ///< [n] position ids, or empty: 0 ... n - 1
    std::vector<float> frequencies;      ///< [rotaryDim / 2] inverse frequencies, or empty: RoPE is not known
    RopeInfo rope;                       ///< of the frequencies; rotaryDim is taken from them
    std::optional<double> scaling;       ///< 1/sqrt(d) when left out
    double softcap = 0;                  ///< 0: none
    std::int64_t slidingWindow = 0;      ///< 0: none
    int layer = 0, numLayers = 0;        ///< numLayers 0: layer + 1
};

/// The layer as a capture whose tokens are numbered. Throws Error naming the argument of evict() and measure().
std::shared_ptr<const CaptureReader> captureOf(LayerArrays arrays);

} // namespace kvscope
