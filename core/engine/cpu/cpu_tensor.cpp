// Tensors of the CPU engine are plain vectors of float; a range of rows is a second look at the same vector.
#include "core/engine/cpu/cpu_tensor.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace kvscope::cpu {

TensorView viewOf(const Tensor& tensor) {
    assert(!tensor.empty());
    const auto& storage = static_cast<const CpuStorage&>(*tensor.storage());
    return {storage.data->data() + storage.offset, storage.headStride};
}

Tensor makeTensor(Shape shape, std::vector<float> data) {
    assert(static_cast<std::int64_t>(data.size()) == shape.count());
    auto storage = std::make_shared<CpuStorage>();
    storage->headStride = shape.rank() == 0 ? 0 : shape.count() / std::max<std::int64_t>(1, shape[0]);
    storage->data = std::make_shared<const std::vector<float>>(std::move(data));
    return {shape, std::move(storage)};
}

std::int64_t rowWidth(const Tensor& tensor) { return tensor.shape().rank() == 3 ? tensor.size(2) : 1; }

Shape withRows(const Tensor& tensor, std::int64_t rows) {
    if (tensor.shape().rank() == 3)
        return {tensor.size(0), rows, tensor.size(2)};
    return {tensor.size(0), rows};
}

} // namespace kvscope::cpu
