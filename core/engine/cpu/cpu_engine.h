#pragma once

#include "core/engine/cpu/cpu_tensor.h"
#include "core/engine/cpu/kernels.h"
#include "core/engine/cpu/workers.h"
#include "core/engine/engine.h"

namespace kvscope::cpu {

/// The complete engine on the CPU; contracts are those of engine.h. Members are defined in one file per primitive.
class CpuEngine final : public Engine {
public:
    CpuEngine(int threads, const std::string& instructionSet, Arithmetic arithmetic)
        : m_threads(threads), m_workers(threads), m_kernels(kernelsFor(instructionSet)), m_arithmetic(arithmetic) {}

    std::string name() const override { return "cpu"; }
    std::string arithmetic() const override {
        return m_arithmetic == Arithmetic::Exact ? "exact index contract" : "fast float, outside the index contract";
    }
    EngineState state() const override;

    Tensor upload(HostTensor tensor) const override;
    Tensor onDemand(std::shared_ptr<const RowSource> source) const override { return makeTensor(std::move(source)); }
    HostTensor download(const Tensor& tensor) const override;
    Tensor rows(const Tensor& tensor, std::int64_t begin, std::int64_t end) const override;
    Tensor gatherRows(const Tensor& tensor, const RowPositions& rows) const override;

    HostTensor rowNorms(const Tensor& keys, const Checkpoint& checkpoint) const override;
    HostTensor anchor(const Tensor& keys, AnchorKind kind, const Checkpoint& checkpoint) const override;
    HostTensor similarity(const Tensor& keys, const HostTensor& anchor, SimilarityMetric metric,
                          const Checkpoint& checkpoint) const override;
    HostTensor pairwiseSums(const Tensor& keys, SimilarityMetric metric, const Checkpoint& checkpoint) const override;
    HostTensor attentionColumnSums(const AttentionInput& input, const Checkpoint& checkpoint) const override;

    HostTensor attentionChunkSums(const AttentionChunksInput& input, const Checkpoint& checkpoint) const override;
    Leverage leverage(const LeverageRequest& request, const Checkpoint& checkpoint) const override;
    std::vector<double> spectralDistortion(const Tensor& rows, std::span<const WeightedSet> kept,
                                           const Checkpoint& checkpoint) const override;

    std::vector<GreedyCenters> greedyCenters(const Tensor& keys, const CentersRequest& request,
                                             const Checkpoint& checkpoint) const override;
    std::vector<StreamClusters> streamClusters(const Tensor& keys, std::span<const double> radii, std::int64_t most,
                                               const Checkpoint& checkpoint) const override;

    WeightedAttention weightedAttention(const WeightedAttentionInput& input,
                                        const Checkpoint& checkpoint) const override;

    AttentionMap attentionMap(const AttentionMapInput& input, const Checkpoint& checkpoint) const override;

    HostTensor singularValues(const Tensor& rows, const RowPositions& chosen,
                              const Checkpoint& checkpoint) const override;
    HostTensor prefixOperatorNorms(const Tensor& rows, std::int64_t first, std::int64_t count,
                                   const Checkpoint& checkpoint) const override;
    std::vector<BalancingSteps> balancingWalks(const BalancingWalks& input,
                                               const Checkpoint& checkpoint) const override;

    PrincipalAxes principalAxes(const Tensor& keys, std::int64_t head, int components,
                                const Checkpoint& checkpoint) const override;
    HostTensor project(const Tensor& keys, std::int64_t head, const PrincipalAxes& axes) const override;

private:
    HostTensor meanAnchor(const Tensor& keys, bool normalised, Progress& progress) const;
    HostTensor medianAnchor(const Tensor& keys, Progress& progress) const;

    int m_threads; ///< as asked for
    Workers m_workers;
    const Kernels& m_kernels;
    const Arithmetic m_arithmetic;
};

} // namespace kvscope::cpu
