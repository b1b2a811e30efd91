// Runs for Python: parses a policy, releases the interpreter while the engine works, and handles Ctrl+C.
#include "app/python/python_run.h"

#include "core/base/error.h"
#include "core/engine/engine.h"
#include "core/policies/policy.h"
#include "core/run/random_files.h"

#include <nanobind/nanobind.h>

#include <atomic>
#include <chrono>

namespace nb = nanobind;

namespace kvscope {

namespace {

constexpr std::chrono::milliseconds kSignalInterval{50};

} // namespace

std::shared_ptr<const LayerRunner> makeRunner(int threads, std::size_t cacheBytes) {
    return std::make_shared<const LayerRunner>(std::shared_ptr<const Engine>(makeCpuEngine(threads, {})), cacheBytes);
}

void withoutLock(const std::function<void(const Checkpoint&)>& work) {
    std::stop_source stop;
    std::atomic<bool> interrupted = false;
    auto last = std::chrono::steady_clock::now();
    const Checkpoint checkpoint(stop.get_token(), [&](double, double) { // one call at a time
        const auto now = std::chrono::steady_clock::now();
        if (interrupted || now - last < kSignalInterval) return;
        last = now;
        const nb::gil_scoped_acquire lock;
        if (PyErr_CheckSignals() == 0) return;
        PyErr_Clear(); // raised again where Python called
        interrupted = true;
        stop.request_stop();
    });
    try {
        const nb::gil_scoped_release released;
        work(checkpoint);
    } catch (const Cancelled&) {
        PyErr_SetNone(PyExc_KeyboardInterrupt);
        throw nb::python_error();
    }
}

std::shared_ptr<const RunResult> runLayer(const LayerRunner& runner, std::shared_ptr<const CaptureReader> capture,
                                          LayerIndex layer, const RunWords& words, bool measure) {
    RunRequest request;
    request.policy = PolicySpec::parse(words.policy);
    if (!request.policy.budget && policyById(request.policy.policy).card().usesBudget)
        throw Error(
            {.sentence = "policy '" + words.policy + "' has no budget",
             .place = "policy",
             .remedy = "Write " + words.policy + "@0.25 (fraction kept) or " + words.policy + "@2048t (tokens)"});
    request.budget = request.policy.budget.value_or(Budget{});
    request.cut = Cut::resolve(words.cut, *capture);
    request.random = words.uniforms.empty() && words.sketch.empty()
                         ? nullptr
                         : replayRandom(words.uniforms, words.sketch, capture->info());
    request.capture = std::move(capture);
    request.layer = layer;
    request.seed = words.seed;
    request.measure = measure;
    std::shared_ptr<const RunResult> result;
    withoutLock([&](const Checkpoint& checkpoint) { result = runner.run(request, checkpoint); });
    return result;
}

} // namespace kvscope
