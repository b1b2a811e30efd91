// Arithmetic on the sizes of tensors.
#include "core/base/host_tensor.h"

#include <algorithm>
#include <cassert>

namespace kvscope {

Shape::Shape(std::initializer_list<std::int64_t> sizes) : m_rank(static_cast<int>(sizes.size())) {
    assert(sizes.size() <= m_sizes.size());
    std::ranges::copy(sizes, m_sizes.begin());
}

std::int64_t Shape::count() const {
    std::int64_t product = m_rank == 0 ? 0 : 1;
    for (int axis = 0; axis < m_rank; ++axis) product *= m_sizes[axis];
    return product;
}

HostTensor HostTensor::filled(const Shape& shape, float value) {
    return {shape, std::vector<float>(static_cast<std::size_t>(shape.count()), value)};
}

} // namespace kvscope
