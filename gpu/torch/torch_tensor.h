#pragma once

#include "core/engine/tensor.h"

#include <cstdint>
#include <span>
#include <vector>

// LibTorch's headers stay in the sources: a forward declaration is enough to name its tensor.
namespace at {
class Tensor;
}

namespace kvscope::gpu {

/// The float numbers of a tensor that this engine made, on its device. Widens what is stored in 16 bits.
at::Tensor numbersOf(const Tensor& tensor);
/// The same as they are stored: float, bfloat16 or half.
at::Tensor storedNumbersOf(const Tensor& tensor);
/// Rounds to float once; any floating type.
Tensor tensorOf(const at::Tensor& numbers);
/// Keeps the type of uploaded rows: float, bfloat16 or half. fitsPairs: as fitsFloatPairs says.
Tensor storedTensorOf(const at::Tensor& numbers, bool fitsPairs = false);
/// Whether every number was seen to be one that pairs of floats can add up products of (gpu/kernels/product_sums.h).
bool fitsFloatPairs(const Tensor& tensor);

/// Copies to the host, converting to the list's type. Waits for the device.
HostTensor hostTensorOf(const at::Tensor& numbers);
std::vector<double> doublesOf(const at::Tensor& numbers);
std::vector<std::int64_t> integersOf(const at::Tensor& numbers);

} // namespace kvscope::gpu
