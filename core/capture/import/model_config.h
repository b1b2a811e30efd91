#pragma once

#include "core/capture/capture.h"

#include <optional>
#include <string>
#include <vector>

namespace kvscope {

/// The attention fields of a Hugging Face `config.json`. 0 or empty: not stated.
struct ModelConfig {
    std::string modelId;
    int numLayers = 0, numQueryHeads = 0, numKvHeads = 0, headDim = 0;
    double scaling = 0; ///< the factor on q.k
    double softcap = 0;
    std::int64_t slidingWindow = 0;
    std::vector<std::string> layerTypes; ///< by layer; empty: all alike
    bool rotates = false;
    RopeInfo rope;
    /// [rotaryDim / 2] for the rotations `default`, `linear` and `llama3`; empty for others, whose angles depend on
    /// more than the configuration says.
    std::vector<float> inverseFrequencies;

    bool slides(int layer) const; ///< the layer has the sliding window
    std::string layerType(int layer) const;
};

/// Throws Error naming the field.
ModelConfig readModelConfig(const std::string& path);

} // namespace kvscope
