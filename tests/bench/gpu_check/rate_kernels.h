#pragma once

#include "gpu/kernels/device_data.h"

#include <cstddef>

// Loops that do one thing as fast as the device can: what shares of its rates are taken of, and what empties its
// caches.
namespace kvscope::check {

/// Reads and writes nothing: the caches are left full of these bytes.
void readBytes(const void* bytes, std::size_t count, gpu::Stream stream);

/// bfloat16 products of 16 x 16 by 16 x 8 numbers in registers; `out` is never written.
void multiplyMatrices(int processors, void* out, gpu::Stream stream);
double matrixOperations(int processors);

/// Fused multiply-adds; `out` is never written.
void multiplyDoubles(int processors, void* out, gpu::Stream stream);
void multiplyFloats(int processors, void* out, gpu::Stream stream);
double scalarOperations(int processors); ///< of either

} // namespace kvscope::check
