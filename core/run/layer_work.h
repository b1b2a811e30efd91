#pragma once

#include "core/engine/engine.h"
#include "core/metrics/measure_values.h"
#include "core/policies/policy.h"
#include "core/run/layer_reads.h"
#include "core/run/run.h"
#include "core/run/stage_cache.h"

#include <chrono>
#include <functional>
#include <memory>
#include <string>

namespace kvscope {

/// A value with the time that it took to compute.
template <class T> struct Timed {
    T value;
    double milliseconds = 0;
};

/// Calls `work` and returns its result with the time that it took.
template <class Work> auto timed(const Work& work) {
    using Clock = std::chrono::steady_clock;
    const Clock::time_point start = Clock::now();
    Timed<decltype(work())> made{work()};
    made.milliseconds = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
    return made;
}

inline std::size_t bytesOf(const Shape& shape) { return static_cast<std::size_t>(shape.count()) * sizeof(float); }

/// The steps of a run on one layer, each through the runner's cache.
class LayerWork {
public:
    LayerWork(const LayerRunner& runner, const std::shared_ptr<const CaptureReader>& capture, LayerIndex layer)
        : LayerWork(runner.engine(), runner.cache(), runner.keyOf(capture), *capture, layer) {}

    /// The prefix of all cache keys of a layer.
    static std::string prefixOf(const std::string& capture, LayerIndex layer) {
        return capture + std::to_string(layer.value) + "|";
    }
    /// The tensor [H, rows, d] as captured.
    Tensor tensor(TensorRole role, const Checkpoint& checkpoint, double* milliseconds = nullptr) const;
    /// Rows [begin, end) of it; those of queries are read alone if the capture can and not all queries are cached.
    Tensor rows(const LayerRead& read, const Checkpoint& checkpoint, double* milliseconds = nullptr) const;

    /// Fills selection, scores and notes, by the policy or from the recorded list.
    void choose(RunResult& result, const Checkpoint& checkpoint) const;
    /// Further measures of a measured result. Throws Error.
    std::vector<MeasureValues> measures(const RunResult& result, std::span<const std::string> ids,
                                        const Checkpoint& checkpoint) const;
    /// Fills the fidelity, or a note that says why there is none.
    void measure(RunResult& result, const Checkpoint& checkpoint) const;

private:
    struct Chosen;
    struct Scored;

    /// `prefix` is that of all cache keys of the capture.
    LayerWork(const Engine& engine, StageCache& cache, const std::string& prefix, const CaptureReader& capture,
              LayerIndex layer);
    HostTensor read(TensorRole role, const Checkpoint& checkpoint) const;
    Tensor queries(const QueryRows& queries, const Checkpoint& checkpoint, double* milliseconds) const;
    PolicyInput policyInput(const RunResult& result, const Checkpoint& checkpoint, double& milliseconds) const;
    void chooseByPolicy(RunResult& result, const Checkpoint& checkpoint) const;
    std::shared_ptr<const Timed<Features>> features(RunResult& result, const Policy& policy,
                                                    const PolicyInput& input) const;
    Scored combined(const RunRequest& request, const Policy& policy, const PolicyInput& input,
                    const Features& features) const;
    std::shared_ptr<const Scored> score(RunResult& result, const Policy& policy, const PolicyInput& input) const;
    Chosen chosen(const RunRequest& request, const Policy& policy, const PolicyInput& input,
                  const Scored* scored) const;
    std::shared_ptr<const Chosen> decide(RunResult& result, const Policy& policy, const PolicyInput& input,
                                         const Scored* scored) const;
    /// `nested`: sets that will be compared with it, see exactAttention.
    std::shared_ptr<const ExactAttention> exact(const FidelityInput& input, const Checkpoint& checkpoint,
                                                std::vector<std::vector<WeightedSet>> nested = {}) const;
    /// What `chosen` keeps and what its request's later budgets keep, as far as they are nested; empty without those.
    std::vector<std::vector<WeightedSet>> nestedSets(const RunResult& chosen, const Checkpoint& checkpoint) const;
    std::shared_ptr<ChoiceMemo> memoOf(const RunRequest& request, const Checkpoint& checkpoint) const;
    std::function<std::shared_ptr<const HostTensor>()> importedBy(const RunRequest& request,
                                                                  const Checkpoint& checkpoint) const;
    FidelityInput fidelityInput(RunResult& result, const Checkpoint& checkpoint) const;
    /// Adds the moved cache when the result uses positions in the cache.
    FidelityInput left(FidelityInput input, const RunResult& result, const Checkpoint& checkpoint) const;
    std::string keyOf(TensorRole role) const;
    std::string keyOf(const char* step, const RunRequest& request, Stage stage) const;

    const Engine& m_engine;
    StageCache& m_cache;
    std::string m_ofCapture, m_prefix; ///< prefixes of all cache keys of the capture and of the layer
    const CaptureReader& m_capture;
    const LayerInfo& m_layer;
};

/// Reads `reads` of a layer into the runner's cache.
void readLayer(const LayerRunner& runner, const std::shared_ptr<const CaptureReader>& capture, LayerIndex layer,
               std::span<const LayerRead> reads, const Checkpoint& checkpoint);
/// Drops all that the runner has cached of a layer.
void forgetLayer(const LayerRunner& runner, const std::shared_ptr<const CaptureReader>& capture, LayerIndex layer);
/// Takes a recorded list instead of a policy's choice. Throws Error when the list does not fit the request.
void takeRecorded(RunResult& result);

} // namespace kvscope
