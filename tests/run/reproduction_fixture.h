#pragma once

#include "core/engine/engine.h"
#include "core/metrics/fidelity.h"
#include "core/studies/reproduction.h"
#include "tests/support/random_capture.h"
#include "tests/support/run_request.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

/// Runs that a reproduction is made of, one by one.
namespace kvscope::reproduction_fixture {

inline std::vector<std::shared_ptr<const CaptureReader>> captures(int count, TokenIndex tokens = 80) {
    std::vector<std::shared_ptr<const CaptureReader>> all;
    for (int i = 0; i < count; ++i)
        all.push_back(makeRandomCapture(20 + static_cast<std::uint64_t>(i), tokens, 2, 4, 2, 8));
    return all;
}

inline LayerRunner makeRunner() { return LayerRunner(std::shared_ptr<const Engine>(makeCpuEngine(2))); }

/// No policy of the table wants more tokens than this, so no row may refuse.
inline constexpr TokenIndex kEnoughForEveryRow = 400;

inline std::shared_ptr<const RunResult> run(const LayerRunner& runner,
                                            const std::shared_ptr<const CaptureReader>& capture, int layer,
                                            const std::string& policy, std::uint64_t seed = 0) {
    RunRequest request = runRequest(capture, policy);
    request.layer = LayerIndex(layer);
    request.seed = seed;
    return runner.run(request, {});
}

/// The mean output error of one run.
inline double errorOf(const LayerRunner& runner, const std::shared_ptr<const CaptureReader>& capture, int layer,
                      const std::string& policy) {
    return meanOfNumbers(run(runner, capture, layer, policy)->fidelity->meanOutputError);
}

inline bool near(double a, double b) { return std::abs(a - b) <= 1e-9 * std::max(1.0, std::abs(b)); }

inline std::vector<std::set<TokenIndex>> keptOf(const LayerRunner& runner,
                                                const std::shared_ptr<const CaptureReader>& capture, int layer,
                                                const std::string& policy, std::uint64_t seed) {
    std::vector<std::set<TokenIndex>> sets;
    const auto result = run(runner, capture, layer, policy, seed);
    for (const HeadSelection& head : result->selection.heads) sets.emplace_back(head.kept.begin(), head.kept.end());
    return sets;
}

/// Mean over the heads of common over all tokens of two runs, by counting.
inline double overlapOf(const LayerRunner& runner, const std::shared_ptr<const CaptureReader>& capture, int layer,
                        const std::string& policy, const std::string& reference, std::uint64_t seed = 0) {
    const auto sets = keptOf(runner, capture, layer, policy, seed),
               others = keptOf(runner, capture, layer, reference, seed);
    double sum = 0;
    for (std::size_t h = 0; h < sets.size(); ++h) {
        std::set<TokenIndex> all = sets[h];
        all.insert(others[h].begin(), others[h].end());
        sum += static_cast<double>(sets[h].size() + others[h].size() - all.size()) / static_cast<double>(all.size());
    }
    return sum / static_cast<double>(sets.size());
}

inline const ReproducedSeries& seriesOf(const ReproductionResult& result, const std::string& measure) {
    return *std::find_if(result.series.begin(), result.series.end(),
                         [&](const ReproducedSeries& s) { return s.measure == measure; });
}

inline bool isPoint(const ReproducedPoint& point, double x, const std::string& text, const Summary& summary) {
    return point.x == x && point.xText == text && point.summary.count == summary.count &&
           near(point.summary.mean, summary.mean) && near(point.summary.deviation, summary.deviation);
}

} // namespace kvscope::reproduction_fixture
