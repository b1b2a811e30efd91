// Sizes of tensors, and tensors read as a whole.
#include "core/base/row_source.h"

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

HostTensor readAll(const RowSource& rows) {
    const Shape shape = rows.shape();
    HostTensor all{shape, std::vector<float>(static_cast<std::size_t>(shape.count())), rows.stored()};
    for (std::int64_t head = 0; head < shape[0]; ++head)
        rows.read(head, 0, shape[1], all.data.data() + head * shape[1] * shape[2]);
    return all;
}

} // namespace kvscope
