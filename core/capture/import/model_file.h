#pragma once

#include "core/capture/capture.h"

#include <string>
#include <vector>

namespace kvscope {

struct DescribedLayer {
    std::string attentionType;      ///< "full_attention" ...
    double scaling = 0;             ///< the factor on q.k
    double softcap = 0;             ///< 0: none
    std::int64_t slidingWindow = 0; ///< 0: none
    bool sinks = false;             ///< a learned logit per query head joins the softmax's denominator
    /// [rotaryDim / 2]; empty: the layer does not rotate.
    std::vector<float> inverseFrequencies;
};

/// The attention of the model that wrote the tensors: files of keys and values do not state it.
struct DescribedModel {
    std::string modelId;
    std::string source; ///< the file, and who resolved it
    int numQueryHeads = 0, numKvHeads = 0, headDim = 0, valueDim = 0;
    std::int64_t promptTokens = 0; ///< the length that the frequencies hold for; 0: any
    RopeInfo rope;
    std::vector<DescribedLayer> layers; ///< all of the model
};

/// Reads what `kvscope-describe` writes (resources/schemas/described_model.schema.json), or a Hugging Face
/// `config.json` of a model type whose conventions are known here (model_file.cpp). Throws Error naming the field; for
/// every other model type the remedy is `kvscope-describe`.
DescribedModel readDescribedModel(const std::string& path);

} // namespace kvscope
