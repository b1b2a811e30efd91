#pragma once

#include "core/capture/capture.h"

namespace kvscope {

/// Opens a `kvscope-capture` version 1 file. Reads attributes and tokens only: the tensors stay on
/// disk until read() asks for a layer. Throws Error.
std::shared_ptr<const CaptureReader> openHdf5Capture(const std::string& path);

} // namespace kvscope
