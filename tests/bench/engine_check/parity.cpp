// The index contract on heads of any length: two engines score the same random layer as the policies do, and must keep
// the same rows at every budget.
#include "tests/bench/engine_check/parity.h"

#include "core/base/error.h"
#include "core/engine/score_arithmetic.h"
#include "tests/bench/engine_check/engine_case.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <limits>

namespace kvscope::check {

namespace {

constexpr std::int64_t kHeads = 8, kQueryHeads = 32, kWidth = 128, kWindow = 32, kBlock = 256;
constexpr std::int64_t kMostChunkRows = 20000; ///< beyond it Compactor takes too long on a CPU

/// One random layer on one engine.
struct Layer {
    const Engine& engine;
    Tensor keys, values, window, chunkQueries;
    AttentionRule rule;
    std::int64_t rows;
};

using Lists = std::vector<std::vector<TokenIndex>>;

struct Choice {
    Lists lists;
    double margin = std::numeric_limits<double>::infinity();
};

struct Recipe {
    const char* name;
    std::function<Choice(const Layer&)> run;
    std::int64_t most; ///< rows beyond which it takes too long on a CPU
};

Layer layerOn(const Engine& engine, std::int64_t n, StoredType stored) {
    const auto rows = [&](naive::Block block) { return uploadRows(engine, storedAs(stored, std::move(block))); };
    Layer layer{engine,
                rows(randomBlock(301, kHeads, n, kWidth, 1, 0.3)),
                rows(randomBlock(302, kHeads, n, kWidth, 0.3)),
                rows(randomBlock(303, kQueryHeads, kWindow, kWidth)),
                {},
                {0.0883883476, 0, 0, {}},
                n};
    for (std::int32_t h = 0; h < kQueryHeads; ++h) layer.rule.gqaGroupOf.push_back(h / (kQueryHeads / kHeads));
    if (n <= kMostChunkRows) layer.chunkQueries = rows(randomBlock(304, kQueryHeads, n, kWidth));
    return layer;
}

/// What is kept of a score at several budgets.
Choice keptOf(const Layer& layer, const HostTensor& scores) {
    Choice choice;
    for (const double share : {0.02, 0.05, 0.1, 0.2, 0.5}) {
        const auto count = static_cast<std::int64_t>(share * static_cast<double>(layer.rows));
        for (TopKHead& head : topK(scores, std::vector<std::int64_t>(kHeads, count), 4, 16)) {
            choice.margin = std::min(choice.margin, double{head.margin});
            choice.lists.push_back(std::move(head.kept));
        }
    }
    return choice;
}

Choice keydiff(const Layer& l) {
    const HostTensor anchor = l.engine.anchor(l.keys, AnchorKind::NormalisedMean, {});
    return keptOf(l, scale(l.engine.similarity(l.keys, anchor, SimilarityMetric::Cosine, {}), -1));
}

Choice keyNorm(const Layer& l) { return keptOf(l, scale(l.engine.rowNorms(l.keys, {}), -1)); }

Choice snapkv(const Layer& l) {
    const AttentionInput input{l.window, l.keys, static_cast<TokenIndex>(l.rows - kWindow), {}, l.rule};
    const HostTensor perKv =
        reduceGroups(l.engine.attentionColumnSums(input, {}), l.rule.gqaGroupOf, kHeads, GroupRule::Mean);
    return keptOf(l, pool(perKv, PoolKind::Max, 7));
}

Choice compactor(const Layer& l) {
    const HostTensor chunks = reduceGroups(l.engine.attentionChunkSums({l.chunkQueries, l.keys, l.rule}, {}),
                                           l.rule.gqaGroupOf, kHeads, GroupRule::Mean);
    LeverageRequest request;
    request.rows = l.keys;
    request.centred = true;
    request.route = LeverageRoute::Cholesky;
    const HostTensor leverage = l.engine.leverage(request, {}).scores;
    return keptOf(l, blend(standardise(leverage, {}), standardise(chunks, {}), 0.4));
}

/// Rows of sign +1 of one round of blocks.
Choice balancekv(const Layer& l) {
    BalancingWalks input{l.keys, l.values, {}, {}};
    for (std::int64_t h = 0; h < kHeads; ++h)
        for (std::int64_t begin = 0; begin < l.rows; begin += kBlock) {
            BalancingWalk walk{.head = h,
                               .rows = {},
                               .uniforms = {},
                               .weights = {},
                               .silent = {},
                               .meanOver = kBlock,
                               .gamma = 0.1,
                               .logScale = 0.00884,
                               .valueConstant = 0.025,
                               .firstIsPlus = true};
            for (std::int64_t r = begin; r < std::min(l.rows, begin + kBlock); ++r)
                walk.rows.push_back(static_cast<TokenIndex>(r));
            for (std::size_t i = 0; i < walk.rows.size(); ++i) // a low-discrepancy sequence stands for the draws
                walk.uniforms.push_back(std::fmod(0.618033988749895 * static_cast<double>(i + 1), 1.0));
            input.walks.push_back(std::move(walk));
        }
    Choice choice;
    const std::vector<BalancingSteps> steps = l.engine.balancingWalks(input, {});
    for (std::size_t w = 0; w < steps.size(); ++w) {
        choice.margin = std::min(choice.margin, steps[w].margin);
        choice.lists.emplace_back();
        for (std::size_t i = 0; i < steps[w].signs.size(); ++i)
            if (steps[w].signs[i] > 0) choice.lists.back().push_back(input.walks[w].rows[i]);
    }
    return choice;
}

Choice kCenter(const Layer& l) {
    Choice choice;
    for (GreedyCenters& run : l.engine.greedyCenters(l.keys, {128, std::vector<TokenIndex>(kHeads, 0)}, {})) {
        choice.margin = std::min(choice.margin, *std::min_element(run.closest.begin(), run.closest.end() - 1));
        choice.lists.push_back(std::move(run.order));
    }
    return choice;
}

const std::vector<Recipe>& recipes() {
    constexpr std::int64_t kAny = std::numeric_limits<std::int64_t>::max();
    static const std::vector<Recipe> all = {{"KeyDiff", keydiff, kAny},     {"key norm", keyNorm, kAny},
                                            {"SnapKV", snapkv, kAny},       {"Compactor", compactor, kMostChunkRows},
                                            {"BalanceKV", balancekv, kAny}, {"k-center", kCenter, 20000}};
    return all;
}

double secondsOf(const std::function<void()>& work) {
    const auto start = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

int compareOne(const Recipe& recipe, const std::string& suffix, const Layer& reference, const Layer& layer) {
    Choice expected, got;
    const double there = secondsOf([&] { expected = recipe.run(reference); });
    const double here = secondsOf([&] { got = recipe.run(layer); });
    int differing = expected.lists.size() == got.lists.size() ? 0 : 1;
    for (std::size_t i = 0; i < std::min(expected.lists.size(), got.lists.size()); ++i)
        differing += expected.lists[i] == got.lists[i] ? 0 : 1;
    fmt::print("{:15} n {:7}  {:5} lists, {} differ  smallest margin {:.1e}  {:9.3f} ms against {:9.3f} ms\n",
               recipe.name + suffix, layer.rows, got.lists.size(), differing, expected.margin, here * 1e3, there * 1e3);
    std::fflush(stdout);
    return differing;
}

/// A list that could not be made differs.
int compareOrFail(const Recipe& recipe, const std::string& suffix, const Layer& reference, const Layer& layer) {
    try {
        return compareOne(recipe, suffix, reference, layer);
    } catch (const Error& error) {
        fmt::print("{:15} n {:7}  FAILED: {}\n", recipe.name + suffix, layer.rows, error.what());
        return 1;
    }
}

} // namespace

int compareLists(const Engine& reference, const Engine& engine, const std::vector<std::int64_t>& rows) {
    int differing = 0;
    for (const std::int64_t n : rows)
        for (const auto& [stored, suffix] : kRowTypes) {
            const Layer there = layerOn(reference, n, stored), here = layerOn(engine, n, stored);
            for (const Recipe& recipe : recipes())
                if (n <= recipe.most) differing += compareOrFail(recipe, suffix, there, here);
        }
    const EngineState state = engine.state();
    for (const CallCounts& counts : {state.delegated, state.fallbacks})
        if (!counts.empty()) fmt::print("ran on the CPU engine: {}\n", textOf(counts));
    fmt::print("{} ({}) and {} ({}): {} lists differ\n", reference.name(), reference.arithmetic(), engine.name(),
               engine.state().device.empty() ? engine.arithmetic() : engine.state().device, differing);
    return differing;
}

} // namespace kvscope::check
