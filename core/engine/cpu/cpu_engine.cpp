// The doors of the CPU engine: making it, and moving tensors and rows in and out.
#include "core/engine/cpu/cpu_engine.h"

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

Tensor CpuEngine::upload(HostTensor tensor) const { return makeTensor(tensor.shape, std::move(tensor.data)); }

HostTensor CpuEngine::download(const Tensor& tensor) const {
    const Shape& shape = tensor.shape();
    HostTensor out{shape, std::vector<float>(static_cast<std::size_t>(shape.count()))};
    if (out.empty())
        return out;
    // Head by head: a range of rows leaves gaps between the heads.
    const TensorView view = viewOf(tensor);
    const std::int64_t heads = shape[0], perHead = shape.count() / heads;
    for (std::int64_t h = 0; h < heads; ++h)
        std::copy_n(view.head(h), perHead, out.data.begin() + h * perHead);
    return out;
}

Tensor CpuEngine::rows(const Tensor& tensor, std::int64_t begin, std::int64_t end) const {
    assert(0 <= begin && begin <= end && end <= tensor.size(1));
    auto part = std::make_shared<CpuStorage>(static_cast<const CpuStorage&>(*tensor.storage()));
    part->offset += begin * rowWidth(tensor);
    return {withRows(tensor, end - begin), std::move(part)};
}

Tensor CpuEngine::gatherRows(const Tensor& tensor, const RowPositions& rows) const {
    const std::int64_t heads = tensor.size(0), width = rowWidth(tensor);
    assert(static_cast<std::int64_t>(rows.size()) == heads);
    const std::int64_t m = rows.empty() ? 0 : static_cast<std::int64_t>(rows.front().size());
    std::vector<float> out(static_cast<std::size_t>(heads * m * width));
    const TensorView view = viewOf(tensor);
    m_workers.each(heads, [&](std::int64_t h) {
        const std::vector<TokenIndex>& list = rows[static_cast<std::size_t>(h)];
        assert(static_cast<std::int64_t>(list.size()) == m);
        float* to = out.data() + h * m * width;
        for (TokenIndex row : list)
            to = std::copy_n(view.head(h) + row * width, width, to);
    });
    return makeTensor(withRows(tensor, m), std::move(out));
}

} // namespace cpu

} // namespace kvscope
