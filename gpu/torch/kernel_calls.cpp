// Provides LibTorch's device memory and stream to the kernels' primitives.
#include "gpu/torch/kernel_calls.h"

#include "gpu/primitives/primitives.h"
#include "gpu/torch/torch_tensor.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>

namespace kvscope::gpu::kernels {

namespace {

/// LibTorch's caching allocator: freed memory is reused by later work of the same stream.
class TorchMemory final : public DeviceMemory {
public:
    explicit TorchMemory(const TorchDevice& device)
        : m_device(device), m_bytes(at::TensorOptions(at::kByte).device(device.isCuda() ? at::Device(at::kCUDA, 0)
                                                                                        : at::Device(at::kCPU))) {}

    std::shared_ptr<void> allocate(std::size_t bytes) const override {
        auto owner = std::make_shared<at::Tensor>(at::empty({static_cast<std::int64_t>(bytes)}, m_bytes));
        void* data = owner->data_ptr();
        return {std::move(owner), data};
    }
    void copyIn(void* to, const void* from, std::size_t bytes) const override {
        deviceView(to, bytes).copy_(hostView(const_cast<void*>(from), bytes));
    }
    void copyOut(void* to, const void* from, std::size_t bytes) const override {
        hostView(to, bytes).copy_(deviceView(const_cast<void*>(from), bytes));
    }
    void finish() const override { m_device.finish(); }
    Stream stream() const override { return static_cast<Stream>(m_device.stream()); }

private:
    at::Tensor deviceView(void* data, std::size_t bytes) const {
        return at::from_blob(data, {static_cast<std::int64_t>(bytes)}, m_bytes);
    }
    static at::Tensor hostView(void* data, std::size_t bytes) {
        return at::from_blob(data, {static_cast<std::int64_t>(bytes)}, at::TensorOptions(at::kByte));
    }

    const TorchDevice& m_device;
    at::TensorOptions m_bytes;
};

/// A tensor [H, n, d] as kernels read it: contiguous rows, any distance between heads. Copies where it is not so.
struct RowsTensor {
    explicit RowsTensor(const Tensor& tensor) {
        if (tensor.empty()) return;
        take(storedNumbersOf(tensor));
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

const float* addressOf(const at::Tensor& numbers) {
    return numbers.defined() ? numbers.const_data_ptr<float>() : nullptr;
}

/// Queries and keys converted to one type, as the attention kernels need.
struct QueriesAndKeys {
    QueriesAndKeys(const Tensor& q, const Tensor& k) : queries(q), keys(k) {
        if (queries.rows.type == keys.rows.type) return;
        queries.widen();
        keys.widen();
    }

    RowsTensor queries, keys;
};

/// Zeroed result [H, n].
at::Tensor scoresLike(const RowsTensor& keys, std::int64_t heads, std::int64_t n) {
    return at::zeros({heads, n}, keys.numbers.options().dtype(at::kFloat));
}

} // namespace

HostTensor rowNorms(const TorchDevice& device, const Tensor& tensor) {
    const RowsTensor keys(tensor);
    const at::Tensor norms = scoresLike(keys, keys.rows.heads, keys.rows.rows);
    gpu::rowNorms(TorchMemory(device), keys.rows, norms.data_ptr<float>());
    return hostTensorOf(norms);
}

HostTensor meanAnchor(const TorchDevice& device, const Tensor& tensor, AnchorKind kind) {
    const RowsTensor keys(tensor);
    const at::Tensor anchors = scoresLike(keys, keys.rows.heads, keys.rows.width);
    gpu::meanAnchor(TorchMemory(device), keys.rows, kind, anchors.data_ptr<float>());
    return hostTensorOf(anchors);
}

HostTensor similarity(const TorchDevice& device, const Tensor& tensor, const HostTensor& anchor,
                      SimilarityMetric metric) {
    const RowsTensor keys(tensor);
    const at::Tensor anchors = device.upload(anchor), scores = scoresLike(keys, keys.rows.heads, keys.rows.rows);
    gpu::similarity(TorchMemory(device), keys.rows, addressOf(anchors), metric, scores.data_ptr<float>());
    return hostTensorOf(scores);
}

HostTensor columnSums(const TorchDevice& device, const AttentionInput& input, Arithmetic arithmetic,
                      const Checkpoint& checkpoint) {
    const auto [queries, keys] = QueriesAndKeys(input.queries, input.keys);
    const at::Tensor sums = scoresLike(keys, queries.rows.heads, keys.rows.rows);
    attentionColumnSums(TorchMemory(device), queries.rows, keys.rows, input, arithmetic, sums.data_ptr<float>(),
                        checkpoint);
    return hostTensorOf(sums);
}

HostTensor chunkSums(const TorchDevice& device, const AttentionChunksInput& input, Arithmetic arithmetic,
                     const Checkpoint& checkpoint) {
    const auto [queries, keys] = QueriesAndKeys(input.queries, input.keys);
    const at::Tensor sums = scoresLike(keys, queries.rows.heads, keys.rows.rows);
    attentionChunkSums(TorchMemory(device), queries.rows, keys.rows, input, arithmetic, sums.data_ptr<float>(),
                       checkpoint);
    return hostTensorOf(sums);
}

AttentionMap attentionMap(const TorchDevice& device, const AttentionMapInput& input, Arithmetic arithmetic,
                          const Checkpoint& checkpoint) {
    const auto [queries, keys] = QueriesAndKeys(input.queries, input.keys);
    return gpu::attentionMap(TorchMemory(device), queries.rows, keys.rows, input, arithmetic, checkpoint);
}

std::vector<GreedyCenters> greedyCenters(const TorchDevice& device, const Tensor& tensor, const CentersRequest& request,
                                         const Checkpoint& checkpoint) {
    const RowsTensor keys(tensor);
    return gpu::greedyCenters(TorchMemory(device), keys.rows, request, checkpoint);
}

std::vector<BalancingSteps> balancingWalks(const TorchDevice& device, const BalancingWalks& input,
                                           Arithmetic arithmetic, const Checkpoint& checkpoint) {
    const RowsTensor keys(input.keys), values(input.values);
    const at::Tensor centres = input.centres.empty() ? at::Tensor() : device.upload(input.centres);
    return gpu::balancingWalks(TorchMemory(device), keys.rows, values.rows, addressOf(centres), input, arithmetic,
                               checkpoint);
}

} // namespace kvscope::gpu::kernels
