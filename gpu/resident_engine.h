#pragma once

#include "core/engine/prefetching.h"
#include "gpu/residency.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <string>

namespace kvscope {

/// A device engine made safe: primitives run on the device, tensors are resident there up to a memory budget, and no
/// failure of the device stops the program. Out of memory: evicts all tensors, then shrinks batches, at last runs the
/// call on the CPU engine. Device lost: all further calls run on the CPU engine, and TensorsLost is thrown for numbers
/// that only the device had. state().notice names the last such event. Thread-safe.
class ResidentEngine final : public Engine, public Prefetching {
public:
    /// memoryBytes 0: no bound on the resident tensors.
    ResidentEngine(std::shared_ptr<const DeviceEngine> device, std::shared_ptr<const Engine> cpu,
                   std::size_t memoryBytes);

    std::string name() const override { return m_device->name(); }
    std::string arithmetic() const override { return m_device->arithmetic(); }
    EngineState state() const override;

    Tensor upload(HostTensor tensor) const override;
    HostTensor download(const Tensor& tensor) const override;
    void prefetch(const Tensor& tensor) const override;
    Tensor rows(const Tensor& tensor, std::int64_t begin, std::int64_t end) const override;
    Tensor gatherRows(const Tensor& tensor, const RowPositions& rows) const override;

    Tensor rowNorms(const Tensor& keys, const Checkpoint& checkpoint) const override;
    Tensor anchor(const Tensor& keys, AnchorKind kind, const Checkpoint& checkpoint) const override;
    Tensor similarity(const Tensor& keys, const Tensor& anchor, SimilarityMetric metric,
                      const Checkpoint& checkpoint) const override;
    Tensor pairwiseSums(const Tensor& keys, SimilarityMetric metric, const Checkpoint& checkpoint) const override;
    Tensor attentionColumnSums(const AttentionInput& input, const Checkpoint& checkpoint) const override;
    Tensor attentionChunkSums(const AttentionChunksInput& input, const Checkpoint& checkpoint) const override;
    Leverage leverage(const LeverageRequest& request, const Checkpoint& checkpoint) const override;
    std::vector<double> spectralDistortion(const Tensor& rows, std::span<const WeightedSet> kept,
                                           const Checkpoint& checkpoint) const override;
    Tensor pool(const Tensor& scores, PoolKind kind, std::int64_t width) const override;
    Tensor reduceGroups(const Tensor& scores, std::span<const std::int32_t> gqaGroupOf, std::int64_t numKvHeads,
                        GroupRule rule) const override;
    Tensor scale(const Tensor& scores, double factor) const override;
    Tensor standardise(const Tensor& scores, const Standardisation& how) const override;
    Tensor blend(const Tensor& a, const Tensor& b, double weight) const override;
    Tensor multiply(const Tensor& a, const Tensor& b) const override;
    std::vector<TopKHead> topK(const TopKRequest& request) const override;
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
    Tensor blockMeanProducts(const Tensor& keys, std::int64_t block, const Checkpoint& checkpoint) const override;
    PrincipalAxes principalAxes(const Tensor& keys, std::int64_t head, int components,
                                const Checkpoint& checkpoint) const override;
    HostTensor project(const Tensor& keys, std::int64_t head, const PrincipalAxes& axes) const override;

private:
    struct Side;
    template <class Call> auto run(const char* primitive, const Call& call) const;
    bool tryAgain(const std::string& primitive, const std::exception& failure) const;
    bool makeRoom() const;
    void handleDeviceLost() const;
    void notice(const std::string& text) const;

    std::shared_ptr<const DeviceEngine> m_device;
    std::shared_ptr<const Engine> m_cpu;
    std::size_t m_memoryBytes;
    mutable Residency m_residency;
    mutable std::atomic<bool> m_lost{false};
    mutable std::mutex m_noticeMutex;
    mutable std::string m_notice;
};

} // namespace kvscope
