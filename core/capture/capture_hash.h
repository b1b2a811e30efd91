#pragma once

#include "core/base/checkpoint.h"
#include "core/capture/h5.h"

#include <string>

namespace kvscope {

/// SHA-256, hexadecimal, over every data set under /tokens, /rope and /layers in ascending path order: path without the
/// leading slash, zero byte, shape as decimals joined by commas, zero byte, little-endian bytes.
std::string hashOfCapture(const h5::File& file, const Checkpoint& checkpoint);

} // namespace kvscope
