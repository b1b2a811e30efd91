#pragma once

#include "core/engine/tensor.h"

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
/// Keeps the type of uploaded rows: float, bfloat16 or half.
Tensor storedTensorOf(const at::Tensor& numbers);

/// Copies to the host, converting to the list's type, to float with one rounding. Waits for the device.
HostTensor hostTensorOf(const at::Tensor& numbers);
std::vector<double> doublesOf(const at::Tensor& numbers);

} // namespace kvscope::gpu
