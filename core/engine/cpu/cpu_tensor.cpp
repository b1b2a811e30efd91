// Tensors of the CPU engine are vectors of float; a range of rows is a view of the same vector.
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

Tensor makeTensor(HostTensor numbers) {
    const Shape shape = numbers.shape;
    assert(std::ssize(numbers.data) == shape.count());
    auto storage = std::make_shared<CpuStorage>();
    storage->headStride = shape.rank() == 0 ? 0 : shape.count() / std::max<std::int64_t>(1, shape[0]);
    storage->stored = numbers.stored;
    storage->data = std::make_shared<const std::vector<float>>(std::move(numbers.data));
    return {shape, std::move(storage)};
}

} // namespace kvscope::cpu
