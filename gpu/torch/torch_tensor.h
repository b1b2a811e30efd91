#pragma once

#include "core/engine/tensor.h"

#include <cstdint>
#include <span>
#include <vector>

// LibTorch's headers are included by sources only; here a forward declaration is enough.
namespace at {
class Tensor;
}

namespace kvscope::gpu {

/// The numbers of a tensor of this engine as float, on its device. Widens what is stored in 16 bits.
at::Tensor numbersOf(const Tensor& tensor);
/// The same as they are stored: float, bfloat16 or half.
at::Tensor storedNumbersOf(const Tensor& tensor);
/// Rounds to float once; any floating type.
Tensor tensorOf(const at::Tensor& numbers);
/// Keeps the type of uploaded rows: float, bfloat16 or half. fitsPairs: as fitsFloatPairs says.
Tensor storedTensorOf(const at::Tensor& numbers, bool fitsPairs = false);
/// Whether every number may be summed in pairs of floats (gpu/kernels/product_sums.h).
bool fitsFloatPairs(const Tensor& tensor);

/// Copies to the host in the list's type. Waits for the device.
HostTensor hostTensorOf(const at::Tensor& numbers);
std::vector<double> doublesOf(const at::Tensor& numbers);
std::vector<std::int64_t> integersOf(const at::Tensor& numbers);

} // namespace kvscope::gpu
