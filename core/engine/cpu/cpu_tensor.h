#pragma once

#include "core/engine/tensor.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace kvscope::cpu {

/// Float numbers in memory. `rows` of a tensor shares them: head h starts at offset + h * headStride.
struct CpuStorage : TensorStorage {
    std::shared_ptr<const std::vector<float>> data;
    StoredType stored = StoredType::Float32;
    std::int64_t offset = 0;
    std::int64_t headStride = 0;
};

/// A tensor's numbers for reading; the rows of one head are contiguous.
struct TensorView {
    const float* data = nullptr;
    std::int64_t headStride = 0;

    const float* head(std::int64_t h) const { return data + h * headStride; }
};

TensorView viewOf(const Tensor& tensor);
/// Takes ownership of the numbers.
Tensor makeTensor(HostTensor numbers);

} // namespace kvscope::cpu
