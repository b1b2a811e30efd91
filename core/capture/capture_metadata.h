#pragma once

#include "core/capture/capture.h"
#include "core/capture/h5.h"

namespace kvscope {

/// "layers/07/k" and so on: where the format keeps a tensor of a layer.
std::string layerPath(LayerIndex layer, std::string_view name);
std::string layerGroup(LayerIndex layer); ///< "layers/07"
/// "k", "q" or "q_window" and so on.
std::string_view tensorName(TensorRole role, const LayerInfo& layer, std::int64_t tokens);
/// The type in which a data set of a layer is stored. Throws Error for any other type than the format's three.
StoredType storedTypeOf(const h5::File& file, const std::string& dataset);

/// All root and layer attributes, checked against the shapes of the data sets. Throws Error.
CaptureInfo readCaptureInfo(const h5::File& file);

/// Everything under /tokens, checked (lengths, offsets, segments). Throws Error.
TokenTable readTokenTable(const h5::File& file, const CaptureInfo& info);

/// Values of /rope/inv_freq, or of /rope/<attention type>/inv_freq where layers differ; empty without rotation.
std::vector<float> readInverseFrequencies(const h5::File& file, const CaptureInfo& info, const LayerInfo& layer);

} // namespace kvscope
