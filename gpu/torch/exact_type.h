#pragma once

#include <cstdint>
#include <span>

namespace kvscope::gpu {

/// Element types that tensors are stored in on a device.
enum class StoredAs : std::int8_t { Float32, BFloat16, Float16 };

/// The first of bfloat16, half and float that represents every number exactly: the type of 16-bit captures.
StoredAs exactTypeOf(std::span<const float> numbers);

/// Whether products of these numbers, as 16-bit rows, may be summed in pairs of floats (gpu/kernels/product_sums.h).
bool fitFloatPairs(std::span<const float> numbers);

} // namespace kvscope::gpu
