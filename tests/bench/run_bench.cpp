// Speed of the run layer at the size of the requirements: n = 32,768, 8 KV heads, 32 query heads, d = 128. A budget
// drag is what a slider does while it moves: everything but the choice comes from the cache.
#include "core/engine/engine.h"
#include "core/run/run.h"
#include "core/run/token_decision.h"
#include "tests/support/random_capture.h"

#include <benchmark/benchmark.h>

#include <memory>
#include <string>

namespace {

using namespace kvscope;

constexpr std::int64_t kTokens = 32768;

std::shared_ptr<const CaptureReader> largeCapture() {
    static const std::shared_ptr<const CaptureReader> capture = makeRandomCapture(1, kTokens, 1, 32, 8, 128);
    return capture;
}

const LayerRunner& runner() {
    static const LayerRunner runner(makeCpuEngine());
    return runner;
}

RunRequest requestOf(const std::string& spec, std::int64_t budget) {
    RunRequest request;
    request.capture = largeCapture();
    request.policy = PolicySpec::parse(spec);
    request.budget = Budget::parse(std::to_string(budget) + "t");
    request.cut = Cut::resolve("last:256", *request.capture);
    request.measure = false;
    return request;
}

/// Every step is another budget, so that the choice itself is never in the cache.
void dragBudget(benchmark::State& state, const std::string& spec) {
    static std::int64_t budget = 1000;
    runner().run(requestOf(spec, 1), {});
    for (auto _ : state) benchmark::DoNotOptimize(runner().run(requestOf(spec, 1000 + budget++ % 30000), {}));
}

/// "Why kept": rank, margin and flip budget of one token, as hovering asks for them.
void tokenDecision(benchmark::State& state) {
    const auto result = runner().run(requestOf("keydiff", 8192), {});
    TokenIndex token = 0;
    for (auto _ : state)
        benchmark::DoNotOptimize(tokenDecisionOf(*result, KvHeadIndex(3), token = (token + 977) % 32000));
}

BENCHMARK_CAPTURE(dragBudget, keydiff, "keydiff")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(dragBudget, snapkv, "snapkv")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(dragBudget, streaming_llm, "streaming_llm")->Unit(benchmark::kMillisecond);
BENCHMARK(tokenDecision)->Unit(benchmark::kMillisecond);

} // namespace

BENCHMARK_MAIN();
