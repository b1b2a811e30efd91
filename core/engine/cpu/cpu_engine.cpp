// Construction of the CPU engine; upload, download and rows of tensors.
#include "core/engine/cpu/cpu_engine.h"
#include "core/engine/cpu/row_blocks.h"

#include <algorithm>
#include <cassert>

namespace kvscope {

std::unique_ptr<Engine> makeCpuEngine(int threads, const std::string& instructionSet, Arithmetic arithmetic) {
    return std::make_unique<cpu::CpuEngine>(threads, instructionSet, arithmetic);
}

namespace cpu {

EngineState CpuEngine::state() const {
    EngineState state;
    state.threads = m_threads;
    return state;
}

Tensor CpuEngine::upload(HostTensor tensor) const { return makeTensor(std::move(tensor)); }

HostTensor CpuEngine::download(const Tensor& tensor) const {
    const Shape& shape = tensor.shape();
    HostTensor out = HostTensor::filled(shape);
    if (out.empty()) return out;
    out.stored = static_cast<const CpuStorage&>(*tensor.storage()).stored;
    // Head by head: a range of rows leaves gaps between the heads.
    const bool onDemand = tensor.storage()->isOnDemand();
    const std::int64_t heads = shape[0], perHead = shape.count() / heads;
    for (std::int64_t h = 0; h < heads; ++h)
        std::copy_n(onDemand ? HeadRows(tensor, h).data() : viewOf(tensor).head(h), perHead,
                    out.data.begin() + h * perHead);
    return out;
}

Tensor CpuEngine::rows(const Tensor& tensor, std::int64_t begin, std::int64_t end) const {
    assert(0 <= begin && begin <= end && end <= tensor.size(1));
    auto part = std::make_shared<CpuStorage>(static_cast<const CpuStorage&>(*tensor.storage()));
    part->offset += begin * tensor.size(2);
    return {{tensor.size(0), end - begin, tensor.size(2)}, std::move(part)};
}

Tensor CpuEngine::gatherRows(const Tensor& tensor, const RowPositions& rows) const {
    const std::int64_t heads = tensor.size(0), width = tensor.size(2);
    assert(std::ssize(rows) == heads);
    const std::int64_t m = rows.empty() ? 0 : std::ssize(rows.front());
    HostTensor out = HostTensor::filled({heads, m, width});
    out.stored = static_cast<const CpuStorage&>(*tensor.storage()).stored;
    const std::int64_t step = tensor.storage()->isOnDemand() ? kRowsPerBlock : tensor.size(1);
    m_workers.each(heads, [&](std::int64_t h) {
        assert(std::ssize(rows[h]) == m);
        float* to = out.data.data() + h * m * width;
        for (std::size_t i = 0; i < rows[h].size();) { // takes all rows of the list within one block
            const std::int64_t begin = rows[h][i] / step * step, end = std::min(begin + step, tensor.size(1));
            const HeadRows block(tensor, h, begin, end);
            for (; i < rows[h].size() && rows[h][i] >= begin && rows[h][i] < end; ++i)
                to = std::copy_n(block.data() + (rows[h][i] - begin) * width, width, to);
        }
    });
    return makeTensor(std::move(out));
}

} // namespace cpu

} // namespace kvscope
