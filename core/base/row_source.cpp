// A tensor that is read row by row, read as a whole.
#include "core/base/row_source.h"

namespace kvscope {

HostTensor readAll(const RowSource& rows) {
    const Shape shape = rows.shape();
    HostTensor all = HostTensor::filled(shape);
    all.stored = rows.stored();
    for (std::int64_t head = 0; head < shape[0]; ++head)
        rows.read(head, 0, shape[1], all.data.data() + head * shape[1] * shape[2]);
    return all;
}

} // namespace kvscope
