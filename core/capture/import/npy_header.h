#pragma once

#include "core/capture/import/tensor_archive.h"

#include <span>

namespace kvscope {

/// What the start of an .npy member says: type, shape and `begin`, the bytes before the numbers, into `tensor` (whose
/// name and path are set). `start` holds the first bytes of the member, at least 4096 or all of it.
/// Big-endian and Fortran-ordered arrays and headers that are none are an Error; types of no use are Unknown.
void readNpyHeader(std::span<const std::byte> start, ArchiveTensor& tensor);

} // namespace kvscope
