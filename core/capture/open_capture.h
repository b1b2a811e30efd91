#pragma once

#include "core/capture/capture.h"

#include <memory>
#include <string>

namespace kvscope {

/// Opens by the format table (HDF5, tensors of other programs). Reads metadata and tokens only. Throws Error.
std::shared_ptr<const CaptureReader> openCapture(const std::string& path);

} // namespace kvscope
