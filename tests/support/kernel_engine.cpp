// What the CUDA kernels compute, behind the engine's interface, so that the engines' cases and their oracles run on
// them.
#include "tests/support/kernel_engine.h"

#include "core/engine/forwarding_engine.h"
#include "gpu/primitives/primitives.h"
#include "tests/support/half_float.h"

#include <bit>
#include <cstring>

namespace kvscope::gpu {

namespace {

/// The floats in the 16 bits that hold them.
std::vector<std::uint16_t> narrowed(const HostTensor& host) {
    std::vector<std::uint16_t> narrow;
    for (const float x : host.data)
        narrow.push_back(host.stored == StoredType::Bfloat16
                             ? static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(x) >> 16)
                             : testing::halfBits(x));
    return narrow;
}

/// A tensor in device memory.
struct OnDevice {
    std::shared_ptr<void> data;
    DeviceRows rows;
};

class KernelEngine final : public ForwardingEngine {
public:
    KernelEngine(std::shared_ptr<const DeviceMemory> memory, std::shared_ptr<const Engine> rest, Arithmetic arithmetic)
        : ForwardingEngine(*rest), m_memory(std::move(memory)), m_rest(std::move(rest)), m_arithmetic(arithmetic) {}

    std::string name() const override { return "kernels"; }
    std::string arithmetic() const override { return m_arithmetic == Arithmetic::Fast ? "fast" : "exact"; }

    HostTensor rowNorms(const Tensor& keys, const Checkpoint&) const override {
        return gpu::rowNorms(*m_memory, put(keys).rows);
    }
    HostTensor anchor(const Tensor& keys, AnchorKind kind, const Checkpoint& checkpoint) const override {
        if (kind == AnchorKind::Median) return m_rest->anchor(keys, kind, checkpoint);
        return gpu::meanAnchor(*m_memory, put(keys).rows, kind);
    }
    HostTensor similarity(const Tensor& keys, const HostTensor& anchor, SimilarityMetric metric,
                          const Checkpoint&) const override {
        return gpu::similarity(*m_memory, put(keys).rows, anchor, metric);
    }
    std::vector<GreedyCenters> greedyCenters(const Tensor& keys, const CentersRequest& request,
                                             const Checkpoint& checkpoint) const override {
        return gpu::greedyCenters(*m_memory, put(keys).rows, request, checkpoint);
    }
    std::vector<BalancingSteps> balancingWalks(const BalancingWalks& input,
                                               const Checkpoint& checkpoint) const override {
        const OnDevice keys = put(input.keys), values = put(input.values);
        return gpu::balancingWalks(*m_memory, keys.rows, values.rows, input, m_arithmetic, checkpoint);
    }
#if KVSCOPE_HAS_CPU_ENGINE
    Leverage leverage(const LeverageRequest& request, const Checkpoint& checkpoint) const override {
        if (!gpu::hasLeverageKernel(request)) return m_rest->leverage(request, checkpoint);
        return gpu::leverage(*m_memory, put(request.rows).rows, request, kvscope::whiteningsOf, checkpoint);
    }
#endif
    HostTensor attentionColumnSums(const AttentionInput& input, const Checkpoint& checkpoint) const override {
        const OnDevice q = put(input.queries), k = put(input.keys);
        return gpu::attentionColumnSums(*m_memory, q.rows, k.rows, input, m_arithmetic, checkpoint);
    }
    HostTensor attentionChunkSums(const AttentionChunksInput& input, const Checkpoint& checkpoint) const override {
        const OnDevice q = put(input.queries), k = put(input.keys);
        return gpu::attentionChunkSums(*m_memory, q.rows, k.rows, input, m_arithmetic, checkpoint);
    }
    WeightedAttention weightedAttention(const WeightedAttentionInput& input,
                                        const Checkpoint& checkpoint) const override {
        const OnDevice q = put(input.queries), k = put(input.keys), v = put(input.values), a = put(input.reference);
        return gpu::weightedAttention(*m_memory, q.rows, k.rows, v.rows, a.rows, input, m_arithmetic, checkpoint);
    }
    AttentionMap attentionMap(const AttentionMapInput& input, const Checkpoint& checkpoint) const override {
        if (std::cmp_greater(input.queryHeads.size(), gpu::kMostMapHeads)) // has no kernel either
            return m_rest->attentionMap(input, checkpoint);
        const OnDevice q = put(input.queries), k = put(input.keys);
        return gpu::attentionMap(*m_memory, q.rows, k.rows, input, m_arithmetic, checkpoint);
    }

private:
    template <class T> OnDevice stored(const std::vector<T>& numbers) const {
        OnDevice result{m_memory->allocate(numbers.size() * sizeof(T)), {}};
        m_memory->copyIn(result.data.get(), numbers.data(), numbers.size() * sizeof(T));
        return result;
    }

    OnDevice put(const Tensor& tensor) const {
        if (tensor.empty()) return {};
        const HostTensor host = m_rest->download(tensor);
        const bool wide = host.stored == StoredType::Float32;
        OnDevice result = wide ? stored(host.data) : stored(narrowed(host));
        result.rows = packedRows(result.data.get(),
                                 wide                                  ? ElementType::Float32
                                 : host.stored == StoredType::Bfloat16 ? ElementType::BFloat16
                                                                       : ElementType::Float16,
                                 tensor.size(0), tensor.size(1), tensor.size(2));
        return result;
    }

    std::shared_ptr<const DeviceMemory> m_memory;
    std::shared_ptr<const Engine> m_rest;
    Arithmetic m_arithmetic;
};

} // namespace

std::unique_ptr<Engine> makeKernelEngine(std::shared_ptr<const DeviceMemory> memory, std::shared_ptr<const Engine> rest,
                                         Arithmetic arithmetic) {
    return std::make_unique<KernelEngine>(std::move(memory), std::move(rest), arithmetic);
}

std::shared_ptr<void> HostMemory::allocate(std::size_t bytes) const {
    std::shared_ptr<unsigned char[]> memory(new unsigned char[bytes]);
    std::memset(memory.get(), 0xff, bytes); // NaN: nothing may rely on zeros
    return memory;
}

std::shared_ptr<void> HostMemory::allocateShared(std::size_t bytes) const { return allocate(bytes); }

void HostMemory::copyIn(void* to, const void* from, std::size_t bytes) const { std::memcpy(to, from, bytes); }

void HostMemory::copyOut(void* to, const void* from, std::size_t bytes) const { std::memcpy(to, from, bytes); }

} // namespace kvscope::gpu
