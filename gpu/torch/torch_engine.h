#pragma once

#include "gpu/torch/torch_device.h"

#include <string>

namespace kvscope::gpu {

/// Linear algebra by LibTorch, on the CPU or on CUDA; everything else by the project's kernels, on CUDA. What is not
/// overridden is left to the CPU engine. Sums run in double and are rounded to float once; Arithmetic::Fast computes
/// attention and the products of balancing walks in float.
class TorchEngine final : public DeviceEngine {
public:
    explicit TorchEngine(const EngineModuleRequest& request);

    std::string name() const override { return m_device.isCuda() ? "cuda" : "torch"; }
    std::string arithmetic() const override {
        return m_arithmetic == Arithmetic::Exact ? "exact index contract" : "fast float, outside the index contract";
    }
    EngineState state() const override;
    DeviceFailure classify(const std::exception& failure) const override { return classified(failure); }
    void enterThread() const override { m_device.enterThread(); }
    std::size_t bytesOf(const Tensor& tensor) const override;
    bool shrink() const override { return m_device.shrink(); }
    std::size_t residentBytes() const { return m_device.residentBytes(); }

    Tensor upload(HostTensor tensor) const override;
    HostTensor download(const Tensor& tensor) const override;
    Tensor rows(const Tensor& tensor, std::int64_t begin, std::int64_t end) const override;
    Tensor gatherRows(const Tensor& tensor, const RowPositions& rows) const override;

    HostTensor pairwiseSums(const Tensor& keys, SimilarityMetric metric, const Checkpoint& checkpoint) const override;
    Leverage leverage(const LeverageRequest& request, const Checkpoint& checkpoint) const override;
    std::vector<double> spectralDistortion(const Tensor& rows, std::span<const WeightedSet> kept,
                                           const Checkpoint& checkpoint) const override;
    HostTensor singularValues(const Tensor& rows, const RowPositions& chosen,
                              const Checkpoint& checkpoint) const override;
    HostTensor prefixOperatorNorms(const Tensor& rows, std::int64_t first, std::int64_t count,
                                   const Checkpoint& checkpoint) const override;
    PrincipalAxes principalAxes(const Tensor& keys, std::int64_t head, int components,
                                const Checkpoint& checkpoint) const override;
    HostTensor project(const Tensor& keys, std::int64_t head, const PrincipalAxes& axes) const override;

#if KVSCOPE_HAS_KERNELS // kernel_primitives.cpp
    HostTensor rowNorms(const Tensor& keys, const Checkpoint& checkpoint) const override;
    HostTensor anchor(const Tensor& keys, AnchorKind kind, const Checkpoint& checkpoint) const override;
    HostTensor similarity(const Tensor& keys, const HostTensor& anchor, SimilarityMetric metric,
                          const Checkpoint& checkpoint) const override;
    HostTensor attentionColumnSums(const AttentionInput& input, const Checkpoint& checkpoint) const override;
    HostTensor attentionChunkSums(const AttentionChunksInput& input, const Checkpoint& checkpoint) const override;
    WeightedAttention weightedAttention(const WeightedAttentionInput& input,
                                        const Checkpoint& checkpoint) const override;
    AttentionMap attentionMap(const AttentionMapInput& input, const Checkpoint& checkpoint) const override;
    std::vector<GreedyCenters> greedyCenters(const Tensor& keys, const CentersRequest& request,
                                             const Checkpoint& checkpoint) const override;
    std::vector<BalancingSteps> balancingWalks(const BalancingWalks& input,
                                               const Checkpoint& checkpoint) const override;
#endif

private:
#if KVSCOPE_HAS_KERNELS
    Leverage sketchedLeverage(const LeverageRequest& request, const Checkpoint& checkpoint) const;
#endif

    TorchDevice m_device;
    Arithmetic m_arithmetic;
};

} // namespace kvscope::gpu
