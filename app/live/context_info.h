#pragma once

#include "app/live/protocol.h"
#include "core/capture/capture.h"

#include <map>

namespace kvscope::live {

/// What `context/read` answers about the model's layers, under the names of a capture's attributes
/// (resources/manual/capture_format.md), checked like those of a file. Throws Error for numbers that no model has;
/// Json::exception for members that are missing or have another type.
CaptureInfo captureInfoOf(const Json& answer, std::int64_t tokens);
/// Inverse frequencies [rotaryDim / 2] of each layer; empty without rotation.
std::map<LayerIndex, std::vector<float>> frequenciesOf(const Json& answer, const CaptureInfo& info);

/// Segments [[begin, end, "context"], ...] within `tokens`. Throws as above.
std::vector<Segment> segmentsOf(const Json& list, std::int64_t tokens);
StoredType storedTypeOf(const std::string& name); ///< "bf16", "f16", "f32"; throws Error for others

} // namespace kvscope::live
