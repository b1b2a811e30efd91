// Does cost grow as theory says? Each feature that is linear in the tokens is timed at growing lengths, and the slope
// of log time over log tokens is its exponent: 1 is linear, 2 would be a hidden n x n.
#include "tests/bench/engine_check/linear_fits.h"

#include "core/base/error.h"
#include "tests/bench/engine_check/engine_case.h"

#include <fmt/core.h>
#include <fnmatch.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <ctime>
#include <numeric>

namespace kvscope::check {

namespace {

constexpr std::int64_t kQueryHeads = 4, kWidth = 128;

AttentionRule rule() { return {0.0883883476, 0, 0, {0, 0, 0, 0}}; }

Tensor keysOf(const Engine& engine, std::int64_t tokens) {
    return uploadRows(engine, randomBlock(61, 1, tokens, kWidth, 1, 0.1));
}

std::function<void()> keydiff(const Engine& e, std::int64_t tokens) {
    return [&e, keys = keysOf(e, tokens)] {
        (void)e.similarity(keys, e.anchor(keys, AnchorKind::NormalisedMean, {}), SimilarityMetric::Cosine, {});
    };
}

std::function<void()> snapkv(const Engine& e, std::int64_t tokens) {
    const AttentionInput input{uploadRows(e, randomBlock(62, kQueryHeads, 32, kWidth)),
                               keysOf(e, tokens),
                               TokenIndex(tokens - 32),
                               {},
                               rule()};
    return [&e, input] { (void)e.attentionColumnSums(input, {}); };
}

std::function<void()> leverage(const Engine& e, std::int64_t tokens) {
    LeverageRequest request;
    request.rows = keysOf(e, tokens);
    request.route = LeverageRoute::Cholesky;
    request.sketch = {Shape{1, kWidth, 64}, randomBlock(63, 1, kWidth, 64, 0.1).numbers};
    return [&e, request] { (void)e.leverage(request, {}); };
}

std::function<void()> chunks(const Engine& e, std::int64_t tokens) {
    const AttentionChunksInput input{uploadRows(e, randomBlock(64, kQueryHeads, tokens, kWidth)), keysOf(e, tokens),
                                     rule()};
    return [&e, input] { (void)e.attentionChunkSums(input, {}); };
}

/// One round of halving in blocks of 256.
std::function<void()> balancing(const Engine& e, std::int64_t tokens) {
    BalancingWalks input;
    input.keys = keysOf(e, tokens);
    input.values = uploadRows(e, randomBlock(65, 1, tokens, kWidth, 0.3));
    for (std::int64_t begin = 0; begin < tokens; begin += 256) {
        BalancingWalk walk;
        walk.gamma = 4;
        walk.logScale = 0.1 * 0.0883883476;
        walk.valueConstant = 0.025;
        walk.firstIsPlus = true;
        walk.meanOver = 256;
        walk.rows.resize(static_cast<std::size_t>(std::min<std::int64_t>(256, tokens - begin)));
        std::iota(walk.rows.begin(), walk.rows.end(), static_cast<TokenIndex>(begin));
        for (std::size_t i = 0; i < walk.rows.size(); ++i) // any fixed numbers: cost does not depend on them
            walk.uniforms.push_back(std::fmod(0.618033988749895 * double(i + 1), 1.0));
        input.walks.push_back(std::move(walk));
    }
    return [&e, input] { (void)e.balancingWalks(input, {}); };
}

double processorSeconds() {
    timespec time{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return double(time.tv_sec) + 1e-9 * double(time.tv_nsec);
}

/// The cheapest of several runs, after one that touches the memory.
double costOf(const std::function<void()>& work) {
    work();
    double best = 1e30, spent = 0;
    for (int runs = 0; runs < 3 || (spent < 0.2 && runs < 200); ++runs) {
        const double before = processorSeconds();
        work();
        const double cost = processorSeconds() - before;
        best = std::min(best, cost);
        spent += cost;
    }
    return best;
}

} // namespace

const std::vector<LinearWork>& linearWorks() {
    static const std::vector<LinearWork> works = {{"keydiff/features", keydiff},
                                                  {"snapkv/window-32", snapkv},
                                                  {"leverage/cholesky-64", leverage},
                                                  {"chunked-attention/256", chunks},
                                                  {"balancekv/block-256", balancing}};
    return works;
}

PowerFit fitPower(std::span<const std::int64_t> tokens, std::span<const double> costs) {
    assert(tokens.size() == costs.size() && tokens.size() >= 2);
    const auto count = static_cast<double>(tokens.size());
    double x = 0, y = 0, xx = 0, xy = 0;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
        const double logTokens = std::log(static_cast<double>(tokens[i])), logCost = std::log(costs[i]);
        x += logTokens / count;
        y += logCost / count;
        xx += logTokens * logTokens / count;
        xy += logTokens * logCost / count;
    }
    PowerFit fit{(xy - x * y) / (xx - x * x), 0};
    for (std::size_t i = 0; i < tokens.size(); ++i) {
        const double fitted = y + fit.exponent * (std::log(static_cast<double>(tokens[i])) - x);
        fit.largestResidual = std::max(fit.largestResidual, std::abs(costs[i] / std::exp(fitted) - 1));
    }
    return fit;
}

int fitLinearWorks(const Engine& engine, std::span<const std::int64_t> sizes, const std::string& pattern, double most) {
    int above = 0, chosen = 0;
    fmt::print("{:24}", "processor ms at tokens");
    for (const std::int64_t size : sizes) fmt::print(" {:>9}", size);
    fmt::print("  exponent  off the line\n");
    for (const LinearWork& work : linearWorks()) {
        if (fnmatch(pattern.c_str(), work.name.c_str(), 0) != 0) continue;
        ++chosen;
        std::vector<double> costs;
        fmt::print("{:24}", work.name);
        for (const std::int64_t size : sizes) {
            costs.push_back(costOf(work.prepare(engine, size)));
            fmt::print(" {:9.3f}", costs.back() * 1e3);
            std::fflush(stdout);
        }
        const PowerFit fit = fitPower(sizes, costs);
        above += fit.exponent > most ? 1 : 0;
        fmt::print("  {:8.3f}  {:6.0f} %{}\n", fit.exponent, 100 * fit.largestResidual,
                   fit.exponent > most ? "  ABOVE LINEAR" : "");
    }
    if (chosen == 0)
        throw Error({"no work matches \"" + pattern + "\"", "--case", "try 'snapkv/*' or leave it away", {}});
    return above;
}

} // namespace kvscope::check
