// Runs a request step by step, each step through the cache: tensors, features, scores, choice, exact attention of the
// evaluation queries, measures. A changed parameter recomputes only the steps that depend on it.
#include "core/run/run.h"

#include "core/capture/named_dataset.h"
#include "core/policies/common_parameters.h"
#include "core/run/calibrated_budget.h"
#include "core/run/layer_work.h"
#include "core/run/stage_cache.h"

#include <fmt/format.h>

#include <cassert>
#include <map>
#include <mutex>
#include <utility>

namespace kvscope {

struct LayerRunner::Caches {
    explicit Caches(std::size_t bytes) : stages(bytes) {}

    StageCache stages;

    /// Key prefix of a reader ("7|"), never reused for another. Drops the cache entries of closed captures.
    std::string prefixOf(const std::shared_ptr<const CaptureReader>& capture) {
        std::vector<std::string> closed;
        std::string prefix;
        {
            const std::lock_guard lock(mutex);
            for (auto at = readers.begin(); at != readers.end();) {
                if (at->first.expired()) closed.push_back(at->second);
                at = at->first.expired() ? readers.erase(at) : std::next(at);
            }
            std::string& known = readers[capture];
            if (known.empty()) known = std::to_string(++count) + "|";
            prefix = known;
        }
        for (const std::string& old : closed) stages.drop(old);
        return prefix;
    }

private:
    std::mutex mutex;
    std::map<std::weak_ptr<const CaptureReader>, std::string, std::owner_less<>> readers;
    std::uint64_t count = 0;
};

LayerRunner::LayerRunner(std::shared_ptr<const Engine> engine, std::size_t cacheBytes)
    : m_engine(std::move(engine)), m_caches(std::make_unique<Caches>(cacheBytes)) {}

LayerRunner::~LayerRunner() = default;

const Engine& LayerRunner::engine() const { return *m_engine; }

StageCache& LayerRunner::cache() const { return m_caches->stages; }

std::string LayerRunner::keyOf(const std::shared_ptr<const CaptureReader>& capture) const {
    return m_caches->prefixOf(capture) + "view|";
}

Tensor LayerRunner::tensor(const std::shared_ptr<const CaptureReader>& capture, LayerIndex layer, TensorRole role,
                           const Checkpoint& checkpoint) const {
    const LayerWork work(*m_engine, m_caches->stages, m_caches->prefixOf(capture), *capture, layer);
    return work.tensor(role, checkpoint);
}

std::shared_ptr<const RunResult> LayerRunner::run(const RunRequest& request, const Checkpoint& checkpoint,
                                                  const Partial& partial) const {
    assert(request.capture);
    if (request.budget.unit == Budget::Unit::Quality) return runCalibrated(request, checkpoint, partial);
    return runOnce(request, checkpoint, partial);
}

std::shared_ptr<const RunResult> LayerRunner::runOnce(const RunRequest& request, const Checkpoint& checkpoint,
                                                      const Partial& partial) const {
    const LayerWork work(*m_engine, m_caches->stages, m_caches->prefixOf(request.capture), *request.capture,
                         request.layer);
    auto result = std::make_shared<RunResult>();
    result->request = request;
    result->visible = request.cut.token;
    result->engine = m_engine->name();
    result->arithmetic = m_engine->arithmetic();
    work.choose(*result, request.measure ? checkpoint.part(0, 0.5) : checkpoint);
    if (const std::string warning = request.capture->info().checkWarning(); !warning.empty())
        result->notes.push_back(warning);
    const EngineState state = m_engine->state();
    if (!state.notice.empty()) result->notes.push_back(state.notice);
    if (!state.fallbacks.empty())
        result->notes.push_back("calls that failed on the device so far and ran on the CPU: " +
                                textOf(state.fallbacks) + "; the last: " + state.failure);
    if (!request.measure) {
        if (partial) partial(result);
        return result;
    }
    if (partial) partial(std::make_shared<const RunResult>(*result));
    work.measure(*result, checkpoint.part(0.5, 1));
    return result;
}

// The curve belongs to the capture, not to the layer: it is found once and cached.
std::shared_ptr<const CalibratedBudget> LayerRunner::calibrated(const RunRequest& request,
                                                                const Checkpoint& checkpoint) const {
    PolicySpec policy = request.policy;
    policy.budget.reset();
    const std::string key = fmt::format("{}calibrated|{}|{}|{}|{}|{}|{}", m_caches->prefixOf(request.capture),
                                        policy.text(), request.budget.text(), pathStamp(request.budget.curve),
                                        request.cut.token, request.seed, request.random ? request.random->id() : "");
    return m_caches->stages.get<CalibratedBudget>(key, checkpoint, [&] {
        return StageCache::Made<CalibratedBudget>{calibratedBudget(*this, request, checkpoint),
                                                  sizeof(CalibratedBudget)};
    });
}

std::shared_ptr<const RunResult> LayerRunner::runCalibrated(const RunRequest& request, const Checkpoint& checkpoint,
                                                            const Partial& partial) const {
    RunRequest resolved = request;
    resolved.budget = {};
    if (!policyById(request.policy.policy).card().usesBudget) return run(resolved, checkpoint, partial);
    const auto budget = calibrated(request, checkpoint.part(0, 0.5));
    resolved.budget.value = budget->retention;
    if (roundingOf(request.policy.values) != Rounding::Ceil) // ceil(r* N), whatever rounding the policy's variant has
        resolved.budget = {Budget::Unit::Tokens,
                           static_cast<double>(resolveBudget(resolved.budget, request.cut.token, Rounding::Ceil)),
                           {}};
    const auto marked = [&](const std::shared_ptr<const RunResult>& plain) {
        auto result = std::make_shared<RunResult>(*plain);
        result->calibrated = budget;
        result->notes.insert(result->notes.begin(), budget->text());
        return std::shared_ptr<const RunResult>(std::move(result));
    };
    const Partial delivered = [&](const std::shared_ptr<const RunResult>& plain) { partial(marked(plain)); };
    return marked(run(resolved, checkpoint.part(0.5, 1), partial ? delivered : Partial{}));
}

std::vector<MeasureValues> LayerRunner::measure(const RunResult& result, std::span<const std::string> ids,
                                                const Checkpoint& checkpoint) const {
    const RunRequest& request = result.request;
    const LayerWork work(*m_engine, m_caches->stages, m_caches->prefixOf(request.capture), *request.capture,
                         request.layer);
    return work.measures(result, ids, checkpoint);
}

} // namespace kvscope
