#pragma once

#include "core/capture/capture.h"

#include <pybind11/pybind11.h>

#include <memory>
#include <optional>

namespace kvscope {

/// Arguments of evict() and measure() besides keys and values. What Python leaves out is None.
struct LayerArrays {
    pybind11::object keys, values, queries, keysPreRope, gqaGroupOf, sinks;
    std::optional<double> scaling;  ///< 1/sqrt(head_dim) when left out
    double softcap = 0;             ///< 0: none
    std::int64_t slidingWindow = 0; ///< 0: none
    int layer = 0, numLayers = 0;   ///< 0: layer + 1
};

/// One layer of numpy or torch arrays as a capture: keys and values [KV heads, tokens, d], queries [query heads, last w
/// tokens, d], each also with a leading batch of one. Tokens are numbered. Throws Error naming the argument.
std::shared_ptr<const CaptureReader> captureOf(const LayerArrays& arrays);

} // namespace kvscope
