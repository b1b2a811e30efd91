// Construction of the LibTorch engine; upload, download and rows of tensors.
#include "gpu/torch/torch_engine.h"

#include "gpu/torch/torch_tensor.h"

#include <ATen/core/Tensor.h>

#include <cassert>
#include <utility>
#include <vector>

namespace kvscope::gpu {

TorchEngine::TorchEngine(const EngineModuleRequest& request) : m_device(request), m_arithmetic(request.arithmetic) {}

EngineState TorchEngine::state() const {
    EngineState state;
    state.device = m_device.description();
    return state;
}

Tensor TorchEngine::upload(HostTensor tensor) const {
    return storedTensorOf(m_device.uploadAsStored(std::move(tensor)));
}

HostTensor TorchEngine::download(const Tensor& tensor) const { return hostTensorOf(storedNumbersOf(tensor)); }

std::size_t TorchEngine::bytesOf(const Tensor& tensor) const { return storedNumbersOf(tensor).nbytes(); }

Tensor TorchEngine::rows(const Tensor& tensor, std::int64_t begin, std::int64_t end) const {
    assert(0 <= begin && begin <= end && end <= tensor.size(1));
    return storedTensorOf(storedNumbersOf(tensor).narrow(1, begin, end - begin));
}

Tensor TorchEngine::gatherRows(const Tensor& tensor, const RowPositions& rows) const {
    const at::Tensor from = storedNumbersOf(tensor);
    assert(static_cast<std::int64_t>(rows.size()) == from.size(0));
    const std::int64_t m = rows.empty() ? 0 : static_cast<std::int64_t>(rows.front().size());
    std::vector<std::int64_t> places; // row indices into [H n]
    for (std::size_t h = 0; h < rows.size(); ++h) {
        assert(static_cast<std::int64_t>(rows[h].size()) == m);
        for (const TokenIndex row : rows[h]) places.push_back(static_cast<std::int64_t>(h) * from.size(1) + row);
    }
    std::vector<std::int64_t> sizes = from.sizes().vec();
    sizes[1] = m;
    return storedTensorOf(from.flatten(0, 1).index_select(0, m_device.listOf(places)).view(sizes));
}

} // namespace kvscope::gpu
