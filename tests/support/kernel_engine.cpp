// What the CUDA kernels compute, behind the engine's interface, so that the engines' cases and their oracles run on
// them.
#include "tests/support/kernel_engine.h"

#include "gpu/primitives/attention_lists.h"
#include "gpu/primitives/primitives.h"

#include <bit>
#include <cstring>

namespace kvscope::gpu {

namespace {

/// The floats as bfloat16, or nothing when one of them has more digits.
std::vector<std::uint16_t> narrowed(const std::vector<float>& numbers) {
    std::vector<std::uint16_t> narrow;
    for (const float x : numbers) {
        const auto bits = std::bit_cast<std::uint32_t>(x);
        if ((bits & 0xffffU) != 0)
            return {};
        narrow.push_back(static_cast<std::uint16_t>(bits >> 16));
    }
    return narrow;
}

/// A tensor in device memory.
struct OnDevice {
    std::shared_ptr<void> data;
    DeviceRows rows;

    const float* floats() const { return static_cast<const float*>(data.get()); }
};

class KernelEngine final : public Engine {
public:
    KernelEngine(std::shared_ptr<const DeviceMemory> memory, Arithmetic arithmetic, ElementType rowType)
        : m_memory(std::move(memory)), m_arithmetic(arithmetic), m_rowType(rowType),
          m_cpu(makeCpuEngine(0, {}, arithmetic)) {}

    std::string name() const override { return "kernels"; }
    std::string arithmetic() const override { return m_cpu->arithmetic(); }

    Tensor rowNorms(const Tensor& keys, const Checkpoint&) const override {
        const OnDevice k = put(keys);
        return make({keys.size(0), keys.size(1)}, [&](float* out) { gpu::rowNorms(*m_memory, k.rows, out); });
    }
    Tensor anchor(const Tensor& keys, AnchorKind kind, const Checkpoint& checkpoint) const override {
        if (kind == AnchorKind::Median)
            return m_cpu->anchor(keys, kind, checkpoint);
        const OnDevice k = put(keys);
        return make({keys.size(0), keys.size(2)}, [&](float* out) { meanAnchor(*m_memory, k.rows, kind, out); });
    }
    Tensor similarity(const Tensor& keys, const Tensor& anchor, SimilarityMetric metric,
                      const Checkpoint&) const override {
        const OnDevice k = put(keys), a = putFloats(anchor);
        return make({keys.size(0), keys.size(1)},
                    [&](float* out) { gpu::similarity(*m_memory, k.rows, a.floats(), metric, out); });
    }
    std::vector<TopKHead> topK(const TopKRequest& request) const override {
        const OnDevice scores = putFloats(request.scores);
        return gpu::topK(*m_memory, scores.floats(), request.scores.size(0), request.scores.size(1), request);
    }
    std::vector<GreedyCenters> greedyCenters(const Tensor& keys, const CentersRequest& request,
                                             const Checkpoint& checkpoint) const override {
        return gpu::greedyCenters(*m_memory, put(keys).rows, request, checkpoint);
    }
    std::vector<BalancingSteps> balancingWalks(const BalancingWalks& input,
                                               const Checkpoint& checkpoint) const override {
        const OnDevice keys = put(input.keys), values = put(input.values), centres = putFloats(input.centres);
        return gpu::balancingWalks(*m_memory, keys.rows, values.rows, centres.floats(), input, checkpoint);
    }
    Tensor attentionColumnSums(const AttentionInput& input, const Checkpoint& checkpoint) const override {
        const OnDevice q = put(input.queries), k = put(input.keys);
        return make({input.queries.size(0), input.keys.size(1)}, [&](float* out) {
            gpu::attentionColumnSums(*m_memory, q.rows, k.rows, input, m_arithmetic, out, checkpoint);
        });
    }
    Tensor attentionChunkSums(const AttentionChunksInput& input, const Checkpoint& checkpoint) const override {
        const OnDevice q = put(input.queries), k = put(input.keys);
        return make({input.queries.size(0), input.keys.size(1)}, [&](float* out) {
            gpu::attentionChunkSums(*m_memory, q.rows, k.rows, input, m_arithmetic, out, checkpoint);
        });
    }
    AttentionMap attentionMap(const AttentionMapInput& input, const Checkpoint& checkpoint) const override {
        if (std::cmp_greater(input.queryHeads.size(), gpu::kMostMapHeads)) // has no kernel either
            return m_cpu->attentionMap(input, checkpoint);
        const OnDevice q = put(input.queries), k = put(input.keys);
        return gpu::attentionMap(*m_memory, q.rows, k.rows, input, m_arithmetic, checkpoint);
    }

    // What has no kernel.
    Tensor upload(HostTensor tensor) const override { return m_cpu->upload(std::move(tensor)); }
    HostTensor download(const Tensor& tensor) const override { return m_cpu->download(tensor); }
    Tensor rows(const Tensor& t, std::int64_t begin, std::int64_t end) const override {
        return m_cpu->rows(t, begin, end);
    }
    Tensor gatherRows(const Tensor& t, const RowPositions& r) const override { return m_cpu->gatherRows(t, r); }
    Tensor pairwiseSums(const Tensor& k, SimilarityMetric m, const Checkpoint& c) const override {
        return m_cpu->pairwiseSums(k, m, c);
    }
    Leverage leverage(const LeverageRequest& r, const Checkpoint& c) const override { return m_cpu->leverage(r, c); }
    std::vector<double> spectralDistortion(const Tensor& r, std::span<const WeightedSet> s,
                                           const Checkpoint& c) const override {
        return m_cpu->spectralDistortion(r, s, c);
    }
    Tensor pool(const Tensor& s, PoolKind k, std::int64_t w) const override { return m_cpu->pool(s, k, w); }
    Tensor reduceGroups(const Tensor& s, std::span<const std::int32_t> g, std::int64_t n, GroupRule r) const override {
        return m_cpu->reduceGroups(s, g, n, r);
    }
    Tensor scale(const Tensor& s, double factor) const override { return m_cpu->scale(s, factor); }
    Tensor standardise(const Tensor& s, const Standardisation& how) const override {
        return m_cpu->standardise(s, how);
    }
    Tensor blend(const Tensor& a, const Tensor& b, double w) const override { return m_cpu->blend(a, b, w); }
    Tensor multiply(const Tensor& a, const Tensor& b) const override { return m_cpu->multiply(a, b); }
    std::vector<StreamClusters> streamClusters(const Tensor& k, std::span<const double> r, std::int64_t most,
                                               const Checkpoint& c) const override {
        return m_cpu->streamClusters(k, r, most, c);
    }
    WeightedAttention weightedAttention(const WeightedAttentionInput& i, const Checkpoint& c) const override {
        return m_cpu->weightedAttention(i, c);
    }
    HostTensor singularValues(const Tensor& r, const RowPositions& p, const Checkpoint& c) const override {
        return m_cpu->singularValues(r, p, c);
    }
    HostTensor prefixOperatorNorms(const Tensor& r, std::int64_t f, std::int64_t n,
                                   const Checkpoint& c) const override {
        return m_cpu->prefixOperatorNorms(r, f, n, c);
    }
    Tensor blockMeanProducts(const Tensor& k, std::int64_t b, const Checkpoint& c) const override {
        return m_cpu->blockMeanProducts(k, b, c);
    }
    PrincipalAxes principalAxes(const Tensor& k, std::int64_t h, int n, const Checkpoint& c) const override {
        return m_cpu->principalAxes(k, h, n, c);
    }
    HostTensor project(const Tensor& k, std::int64_t h, const PrincipalAxes& a) const override {
        return m_cpu->project(k, h, a);
    }

private:
    template <class T> OnDevice stored(const std::vector<T>& numbers) const {
        OnDevice result{m_memory->allocate(numbers.size() * sizeof(T)), {}};
        m_memory->copyIn(result.data.get(), numbers.data(), numbers.size() * sizeof(T));
        return result;
    }

    OnDevice putFloats(const Tensor& tensor) const {
        return tensor.empty() ? OnDevice{} : stored(m_cpu->download(tensor).data);
    }

    OnDevice put(const Tensor& tensor) const {
        if (tensor.empty())
            return {};
        const HostTensor host = m_cpu->download(tensor);
        const auto narrow = m_rowType == ElementType::BFloat16 ? narrowed(host.data) : std::vector<std::uint16_t>{};
        OnDevice result = narrow.empty() ? stored(host.data) : stored(narrow);
        result.rows = packedRows(result.data.get(), narrow.empty() ? ElementType::Float32 : ElementType::BFloat16,
                                 tensor.size(0), tensor.size(1), tensor.size(2));
        return result;
    }

    template <class Work> Tensor make(Shape shape, const Work& work) const {
        HostTensor host{shape, std::vector<float>(static_cast<std::size_t>(shape.count()))};
        const auto out = m_memory->allocate(host.data.size() * sizeof(float));
        work(static_cast<float*>(out.get()));
        m_memory->copyOut(host.data.data(), out.get(), host.data.size() * sizeof(float));
        return m_cpu->upload(std::move(host));
    }

    std::shared_ptr<const DeviceMemory> m_memory;
    Arithmetic m_arithmetic;
    ElementType m_rowType;
    std::unique_ptr<Engine> m_cpu;
};

} // namespace

std::unique_ptr<Engine> makeKernelEngine(std::shared_ptr<const DeviceMemory> memory, Arithmetic arithmetic,
                                         ElementType rowType) {
    return std::make_unique<KernelEngine>(std::move(memory), arithmetic, rowType);
}

std::shared_ptr<void> HostMemory::allocate(std::size_t bytes) const {
    std::shared_ptr<unsigned char[]> memory(new unsigned char[bytes]);
    std::memset(memory.get(), 0xff, bytes); // NaN: nothing may rely on zeros
    return memory;
}

void HostMemory::copyIn(void* to, const void* from, std::size_t bytes) const {
    std::memcpy(to, from, bytes);
}

void HostMemory::copyOut(void* to, const void* from, std::size_t bytes) const {
    std::memcpy(to, from, bytes);
}

} // namespace kvscope::gpu
