#pragma once

#include "core/base/checkpoint.h"
#include "core/base/host_tensor.h"
#include "core/capture/cut.h"
#include "core/policies/block_step.h"
#include "core/policies/policy_spec.h"

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>

namespace kvscope {

class CaptureReader;
class Engine;
class RandomSource;
class StageCache;
class Tensor;
enum class TensorRole;
struct Fidelity;
struct MeasureValues;
struct RecordedSelection; // read from a file; it runs in place of a policy
struct StepLog;
struct WeightedSet;

/// Everything that determines a result. The unit of work is a layer with all its heads.
struct RunRequest {
    std::shared_ptr<const CaptureReader> capture;
    LayerIndex layer;
    PolicySpec policy;
    Budget budget; ///< the policy's own @budget already applied
    Cut cut;
    std::uint64_t seed = 0;
    bool measure = true;
    std::shared_ptr<const RecordedSelection> recorded; ///< replaces the policy when set
    std::shared_ptr<const RandomSource> random = {};   ///< null: drawn
    bool recordSteps = false;                          ///< fills RunResult::log
    std::vector<Budget> later = {}; ///< of equal requests that follow: measured in one pass, equal up to rounding
};

/// Time of each stage when it was computed; the flags mark stages that came from the cache.
struct StageTimes {
    double readMs = 0, featuresMs = 0, combineMs = 0, selectMs = 0, measureMs = 0;
    bool featuresFromCache = false, scoresFromCache = false, selectionFromCache = false, fidelityFromCache = false;
};

/// A budget given as a quality, converted to a fraction kept (context-calibrated compression, Compactor 3.5;
/// core/calibration/calibration.h).
struct CalibratedBudget {
    Budget asked;         ///< "tau=0.95"
    double retention = 1; ///< r*(tau), the retention of the run
    double k = 0;         ///< of the curve, see core/metrics/calibration.h
    bool proxy = false;   ///< the curve was fitted to attention outputs, not to a model's losses
    std::string origin;   ///< the curve and its source; contains "proxy" for a proxy

    std::string text() const; ///< "retention 0.381 for tau 0.95, proxy: k = -4.2 fitted to ..."
};

/// A table of scores whose numbers all copies share, because they are large for a long capture.
class SharedTable {
public:
    SharedTable() = default;
    SharedTable(std::shared_ptr<const HostTensor> table) : shape(table->shape), data(table->data), m_table(table) {}
    operator const HostTensor&() const;
    bool empty() const { return data.empty(); }

    Shape shape;
    std::span<const float> data;

private:
    std::shared_ptr<const HostTensor> m_table;
};

/// The result of a run on one layer. Immutable across threads: always held by shared_ptr<const>.
struct RunResult {
    RunRequest request; ///< the budget is a fraction or tokens, also where a quality was asked for
    std::shared_ptr<const CalibratedBudget> calibrated; ///< null unless the budget was a quality
    Selection selection;
    std::int64_t requested = 0;  ///< budget in tokens after rounding
    std::int64_t visible = 0;    ///< tokens before the cut
    SharedTable scores;          ///< [Hkv, cut]; NaN for tokens that left the cache earlier; empty without scores
    SharedTable queryHeadScores; ///< [Hq, cut] where each query head chooses by its own scores; else empty
    std::map<std::string, SharedTable> parts; ///< [Hkv, cut] terms of the score
    SharedTable anchor;                       ///< [Hkv, d] where the policy has one (KeyDiff), else empty
    std::vector<BlockStep> steps;
    std::shared_ptr<const StepLog> log; ///< null unless requested, or when the policy writes no step log
    bool simulated = false;
    std::shared_ptr<const Fidelity> fidelity; ///< null until measured
    StageTimes times;
    std::string engine, arithmetic;
    std::vector<std::string> notes; ///< "SnapKV saw 18 of its 32 window queries" ...
};

/// The fidelity of a measured result. Throws Error where no query was captured after the cut.
const Fidelity& requireFidelity(const RunResult& result);

/// The kept sets as measures take them: [Hkv], or [Hq] where query heads have sets of their own.
std::vector<WeightedSet> weightedSetsOf(const Selection& selection, std::span<const std::int32_t> gqaGroupOf);

/// Bytes of the keys and values stored by all KV heads, at the capture's element width. Duplicates count, also those of
/// query heads with sets of their own. A token that is only in the denominator's sample stores no value.
std::uint64_t storedBytes(const RunResult& result);

/// Runs requests on one engine. Tensors, features, scores, selections, exact attention and fidelity are cached
/// separately, each keyed by everything that determines it, within a memory budget (LRU); concurrent requests for one
/// value compute it once. A capture is identified by its reader: reopening a file gives another capture, and the values
/// of closed captures are dropped. Thread-safe.
class LayerRunner {
public:
    explicit LayerRunner(std::shared_ptr<const Engine> engine, std::size_t cacheBytes = std::size_t{4} << 30);
    ~LayerRunner();

    using Partial = std::function<void(std::shared_ptr<const RunResult>)>;
    /// A budget in quality is converted to a fraction first (core/calibration/calibration.h). Calls `partial` with the
    /// selection first (fidelity still null), then returns the measured result. If the capture holds no evaluation
    /// query, the fidelity stays null and a note says why. Throws Error or Cancelled.
    std::shared_ptr<const RunResult> run(const RunRequest& request, const Checkpoint& checkpoint,
                                         const Partial& partial = {}) const;
    const Engine& engine() const;
    /// Measures of a measured result by their ids (core/metrics/measures.h), in that order. Throws Error for an unknown
    /// id, for one that the capture cannot answer, and where there is no fidelity.
    std::vector<MeasureValues> measure(const RunResult& result, std::span<const std::string> ids,
                                       const Checkpoint& checkpoint) const;
    /// A layer's tensor on the engine, shared with views (PCA). Role as in the capture.
    Tensor tensor(const std::shared_ptr<const CaptureReader>& capture, LayerIndex layer, TensorRole role,
                  const Checkpoint& checkpoint) const;
    /// Cache for expensive results of views (an embedding, log-sum-exps of rows). Keys start with keyOf(capture); the
    /// bytes count against the same budget as the stages.
    StageCache& cache() const;
    std::string keyOf(const std::shared_ptr<const CaptureReader>& capture) const;

private:
    struct Caches;
    std::shared_ptr<const RunResult> runOnce(const RunRequest& request, const Checkpoint& checkpoint,
                                             const Partial& partial) const;
    std::shared_ptr<const CalibratedBudget> calibrated(const RunRequest& request, const Checkpoint& checkpoint) const;
    std::shared_ptr<const RunResult> runCalibrated(const RunRequest& request, const Checkpoint& checkpoint,
                                                   const Partial& partial) const;
    std::shared_ptr<const Engine> m_engine;
    std::unique_ptr<Caches> m_caches;
};

} // namespace kvscope
