// The primitives that have CUDA kernels (gpu/primitives), with LibTorch's memory and stream.
#include "gpu/primitives/primitives.h"
#include "gpu/torch/torch_engine.h"
#include "gpu/torch/torch_tensor.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include <utility>

namespace kvscope::gpu {

namespace {

/// LibTorch's caching allocator: freed memory is reused by later work of the same stream.
class TorchMemory final : public DeviceMemory {
public:
    /// Throws NoDeviceCode on a device that runs no kernels.
    explicit TorchMemory(const TorchDevice& device)
        : m_device(device), m_bytes(at::TensorOptions(at::kByte).device(device.isCuda() ? at::Device(at::kCUDA, 0)
                                                                                        : at::Device(at::kCPU))) {
        if (!device.runsKernels()) throw NoDeviceCode();
    }

    std::shared_ptr<void> allocate(std::size_t bytes) const override {
        return owned(at::empty({static_cast<std::int64_t>(bytes)}, m_bytes));
    }
    std::shared_ptr<void> allocateShared(std::size_t bytes) const override {
        return owned(at::empty({static_cast<std::int64_t>(bytes)},
                               at::TensorOptions(at::kByte).pinned_memory(m_device.isCuda())));
    }
    void copyIn(void* to, const void* from, std::size_t bytes) const override {
        deviceView(to, bytes).copy_(hostView(const_cast<void*>(from), bytes));
    }
    void copyOut(void* to, const void* from, std::size_t bytes) const override {
        hostView(to, bytes).copy_(deviceView(const_cast<void*>(from), bytes));
    }
    void finish() const override { m_device.finish(); }
    bool isIdle() const override { return m_device.isIdle(); }
    Stream stream() const override { return static_cast<Stream>(m_device.stream()); }

private:
    static std::shared_ptr<void> owned(at::Tensor memory) {
        auto owner = std::make_shared<at::Tensor>(std::move(memory));
        void* data = owner->data_ptr();
        return {std::move(owner), data};
    }
    at::Tensor deviceView(void* data, std::size_t bytes) const {
        return at::from_blob(data, {static_cast<std::int64_t>(bytes)}, m_bytes);
    }
    static at::Tensor hostView(void* data, std::size_t bytes) {
        return at::from_blob(data, {static_cast<std::int64_t>(bytes)}, at::TensorOptions(at::kByte));
    }

    const TorchDevice& m_device;
    at::TensorOptions m_bytes;
};

/// A tensor [H, n, d] as kernels read it: contiguous rows, any distance between heads. Copies other tensors.
struct RowsTensor {
    explicit RowsTensor(const Tensor& tensor) {
        if (!tensor.empty()) take(storedNumbersOf(tensor));
    }

    /// Converts 16-bit rows to floats.
    void widen() { take(numbers.to(at::kFloat)); }

    void take(const at::Tensor& stored) {
        numbers = stored;
        if (numbers.stride(2) != 1 || (numbers.size(1) > 1 && numbers.stride(1) != numbers.size(2)))
            numbers = numbers.contiguous();
        const auto type = numbers.scalar_type();
        rows = {numbers.const_data_ptr(),
                type == at::kBFloat16 ? ElementType::BFloat16
                : type == at::kHalf   ? ElementType::Float16
                                      : ElementType::Float32,
                numbers.size(0),
                numbers.size(1),
                numbers.size(2),
                numbers.stride(0)};
    }

    at::Tensor numbers; ///< owns the memory
    DeviceRows rows;
};

/// Queries and keys converted to one type, as the attention kernels need.
struct QueriesAndKeys {
    QueriesAndKeys(const Tensor& q, const Tensor& k) : queries(q), keys(k) {
        if (queries.rows.type == keys.rows.type) return;
        queries.widen();
        keys.widen();
    }

    RowsTensor queries, keys;
};

} // namespace

HostTensor TorchEngine::rowNorms(const Tensor& keys, const Checkpoint& checkpoint) const {
    const TorchMemory memory(m_device);
    checkpoint.stopPoint();
    return gpu::rowNorms(memory, RowsTensor(keys).rows);
}

HostTensor TorchEngine::anchor(const Tensor& keys, AnchorKind kind, const Checkpoint& checkpoint) const {
    if (kind == AnchorKind::Median) throw NoDeviceCode();
    const TorchMemory memory(m_device);
    checkpoint.stopPoint();
    return gpu::meanAnchor(memory, RowsTensor(keys).rows, kind);
}

HostTensor TorchEngine::similarity(const Tensor& keys, const HostTensor& anchor, SimilarityMetric metric,
                                   const Checkpoint& checkpoint) const {
    const TorchMemory memory(m_device);
    checkpoint.stopPoint();
    return gpu::similarity(memory, RowsTensor(keys).rows, anchor, metric);
}

Leverage TorchEngine::sketchedLeverage(const LeverageRequest& request, const Checkpoint& checkpoint) const {
    const TorchMemory memory(m_device);
    return gpu::leverage(memory, RowsTensor(request.rows).rows, request, kvscope::whiteningsOf, checkpoint);
}

HostTensor TorchEngine::attentionColumnSums(const AttentionInput& input, const Checkpoint& checkpoint) const {
    requireNoSinks(input.rule);
    const TorchMemory memory(m_device);
    const auto [queries, keys] = QueriesAndKeys(input.queries, input.keys);
    return gpu::attentionColumnSums(memory, queries.rows, keys.rows, input, m_arithmetic, checkpoint);
}

HostTensor TorchEngine::attentionChunkSums(const AttentionChunksInput& input, const Checkpoint& checkpoint) const {
    requireNoSinks(input.rule);
    if (!input.positions.empty()) throw NoDeviceCode(); // the kernel counts a window in rows
    const TorchMemory memory(m_device);
    const auto [queries, keys] = QueriesAndKeys(input.queries, input.keys);
    return gpu::attentionChunkSums(memory, queries.rows, keys.rows, input, m_arithmetic, checkpoint);
}

WeightedAttention TorchEngine::weightedAttention(const WeightedAttentionInput& input,
                                                 const Checkpoint& checkpoint) const {
    const TorchMemory memory(m_device);
    const auto [queries, keys] = QueriesAndKeys(input.queries, input.keys);
    const RowsTensor values(input.values), reference(input.reference);
    return gpu::weightedAttention(memory, queries.rows, keys.rows, values.rows, reference.rows, input, m_arithmetic,
                                  checkpoint);
}

AttentionMap TorchEngine::attentionMap(const AttentionMapInput& input, const Checkpoint& checkpoint) const {
    requireNoSinks(input.rule);
    if (std::cmp_greater(input.queryHeads.size(), kMostMapHeads)) throw NoDeviceCode();
    const TorchMemory memory(m_device);
    const auto [queries, keys] = QueriesAndKeys(input.queries, input.keys);
    return gpu::attentionMap(memory, queries.rows, keys.rows, input, m_arithmetic, checkpoint);
}

std::vector<GreedyCenters> TorchEngine::greedyCenters(const Tensor& keys, const CentersRequest& request,
                                                      const Checkpoint& checkpoint) const {
    const TorchMemory memory(m_device);
    return gpu::greedyCenters(memory, RowsTensor(keys).rows, request, checkpoint);
}

std::vector<BalancingSteps> TorchEngine::balancingWalks(const BalancingWalks& input,
                                                        const Checkpoint& checkpoint) const {
    const TorchMemory memory(m_device);
    const RowsTensor keys(input.keys), values(input.values);
    return gpu::balancingWalks(memory, keys.rows, values.rows, input, m_arithmetic, checkpoint);
}

} // namespace kvscope::gpu
