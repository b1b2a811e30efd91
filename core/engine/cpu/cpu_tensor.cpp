// Tensors of the CPU engine are vectors of float, or stay in their file; a range of rows is a view of the same numbers.
#include "core/engine/cpu/cpu_tensor.h"

#include "core/base/spare_memory.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace kvscope::cpu {

TensorView viewOf(const Tensor& tensor) {
    assert(!tensor.empty());
    const auto& storage = static_cast<const CpuStorage&>(*tensor.storage());
    if (OnDemand* demand = storage.demand.get()) {
        std::call_once(demand->once, [&] { demand->all = readAll(*demand->source).data; });
        return {demand->all.data() + storage.offset, storage.headStride};
    }
    return {storage.data->data() + storage.offset, storage.headStride};
}

HeadRows::HeadRows(const Tensor& tensor, std::int64_t head, std::int64_t begin, std::int64_t end,
                   const Checkpoint& checkpoint) {
    constexpr std::int64_t rowsPerStep = 16'384; // some milliseconds between stop points
    const auto& storage = static_cast<const CpuStorage&>(*tensor.storage());
    const std::int64_t width = tensor.size(2);
    if (!storage.demand) {
        m_data = viewOf(tensor).head(head) + begin * width;
        return;
    }
    m_read.reset(new float[static_cast<std::size_t>((end - begin) * width)]); // not zeroed: written before it is read
    const std::int64_t first = storage.offset / width;
    for (std::int64_t row = begin; row < end; row += rowsPerStep) {
        checkpoint.stopPoint();
        storage.demand->source->read(head, first + row, std::min(rowsPerStep, end - row),
                                     m_read.get() + (row - begin) * width);
    }
    m_data = m_read.get();
}

Tensor makeTensor(std::shared_ptr<const RowSource> source) {
    const Shape shape = source->shape();
    auto storage = std::make_shared<CpuStorage>();
    storage->headStride = shape[1] * shape[2];
    storage->stored = source->stored();
    storage->demand = std::make_shared<OnDemand>();
    storage->demand->source = std::move(source);
    return {shape, std::move(storage)};
}

Tensor makeTensor(HostTensor numbers) {
    const Shape shape = numbers.shape;
    assert(std::ssize(numbers.data) == shape.count());
    auto storage = std::make_shared<CpuStorage>();
    storage->headStride = shape.rank() == 0 ? 0 : shape.count() / std::max<std::int64_t>(1, shape[0]);
    storage->stored = numbers.stored;
    storage->data = {new std::vector<float>(std::move(numbers.data)), [](std::vector<float>* data) {
                         SpareMemory::give(std::move(*data));
                         delete data;
                     }};
    return {shape, std::move(storage)};
}

} // namespace kvscope::cpu
