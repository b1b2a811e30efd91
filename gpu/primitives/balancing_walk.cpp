// Balancing walks: concatenates the lists of all walks and runs them together.
#include "gpu/kernels/balancing_walk.h"

#include "core/base/error.h"
#include "gpu/primitives/attention_lists.h"
#include "gpu/primitives/long_work.h"
#include "gpu/primitives/primitives.h"

#include <algorithm>
#include <cassert>
#include <string>

namespace kvscope::gpu {

namespace {

/// Kernel input for walks [begin, end).
struct WalkLists {
    std::vector<std::int64_t> offsets{0};
    std::vector<WalkRule> rules;
    std::vector<std::int32_t> rows;
    std::vector<double> uniforms, weights;
    std::vector<std::uint8_t> silent;

    void add(const BalancingWalk& walk) {
        assert(walk.uniforms.size() == walk.rows.size());
        rules.push_back({walk.head, walk.meanOver, walk.gamma, walk.logScale, walk.logShift, walk.valueScale,
                         walk.valueConstant, walk.failAbove, walk.firstIsPlus ? 1 : 0});
        rows.insert(rows.end(), walk.rows.begin(), walk.rows.end());
        uniforms.insert(uniforms.end(), walk.uniforms.begin(), walk.uniforms.end());
        for (std::size_t i = 0; i < walk.rows.size(); ++i) {
            weights.push_back(walk.weights.empty() ? 1 : walk.weights[i]);
            silent.push_back(!walk.silent.empty() && walk.silent[i] != 0 ? 1 : 0);
        }
        offsets.push_back(static_cast<std::int64_t>(rows.size()));
    }
};

/// Kernel output.
struct WalkResults {
    std::vector<std::int8_t> signs;
    std::vector<double> products, diagonal, margins;
    std::vector<std::int64_t> steps;
    std::vector<std::int32_t> endings;
};

/// Runs the steps of all walks together, in launches of a multiple of 64 steps. `call` has the keys, the values and the
/// arithmetic, `operations` are those of all walks.
WalkResults runWalks(const DeviceMemory& memory, WalksCall& call, const std::vector<float>& centres,
                     const WalkLists& lists, std::int64_t longest, double operations, const Checkpoint& checkpoint) {
    constexpr std::int64_t kStep = 64;
    const std::size_t walks = lists.rules.size(), entries = lists.rows.size();
    CallMemory parts(memory);
    call.walks = static_cast<std::int64_t>(walks);
    call.entries = static_cast<std::int64_t>(entries);
    parts.list(call.centres, centres);
    parts.list(call.offsets, lists.offsets);
    parts.list(call.rules, lists.rules);
    parts.list(call.rows, lists.rows);
    parts.list(call.uniforms, lists.uniforms);
    parts.list(call.weights, lists.weights);
    parts.list(call.silent, lists.silent);
    parts.result(call.signs, entries);
    parts.result(call.products, entries);
    parts.result(call.diagonal, entries);
    parts.result(call.steps, walks);
    parts.result(call.endings, walks);
    parts.result(call.margins, walks);
    parts.scratch(call.scratch, entries);
    parts.place();
    LongWork work(memory, checkpoint, operations);
    const auto launch = [&](std::int64_t begin, std::int64_t end, const StopWord& stop) {
        call.firstStep = begin;
        call.endStep = end;
        call.stop = stop;
        balancingWalks(call, memory.stream());
    };
    // A late step costs twice the average one.
    work.each(longest, 2 * operations / static_cast<double>(longest), launch, kStep);
    work.wait();
    parts.fetch();
    return {parts.read(call.signs, entries), parts.read(call.products, entries), parts.read(call.diagonal, entries),
            parts.read(call.margins, walks), parts.read(call.steps, walks),      parts.read(call.endings, walks)};
}

BalancingSteps stepsOf(const WalkResults& results, const WalkLists& lists, std::size_t w) {
    const std::int64_t begin = lists.offsets[w], end = begin + results.steps[w];
    if (results.endings[w] == static_cast<std::int32_t>(WalkEnding::NotFinite))
        throw Error({"the balancing walk of head " + std::to_string(lists.rules[w].head) +
                         " meets a number that is not finite at row " +
                         std::to_string(lists.rows[static_cast<std::size_t>(end)]),
                     "keys and values", "look for NaN or infinity in the capture's keys and values"});
    BalancingSteps steps;
    steps.signs.assign(results.signs.begin() + begin, results.signs.begin() + end);
    steps.products.assign(results.products.begin() + begin, results.products.begin() + end);
    steps.diagonal.assign(results.diagonal.begin() + begin, results.diagonal.begin() + end);
    steps.margin = results.margins[w];
    if (results.endings[w] == static_cast<std::int32_t>(WalkEnding::Failed)) steps.failedAt = results.steps[w];
    return steps;
}

} // namespace

std::vector<BalancingSteps> balancingWalks(const DeviceMemory& memory, const DeviceRows& keys, const DeviceRows& values,
                                           const BalancingWalks& input, Arithmetic arithmetic,
                                           const Checkpoint& checkpoint) {
    WalksCall call;
    call.keys = keys;
    call.values = values;
    call.arithmetic = kernelArithmetic(arithmetic);
    WalkLists lists;
    double pairs = 0; // of rows: half of a matrix of each walk
    std::size_t longest = 1;
    for (const BalancingWalk& walk : input.walks) {
        lists.add(walk);
        longest = std::max(longest, walk.rows.size());
        pairs += static_cast<double>(walk.rows.size()) * static_cast<double>(walk.rows.size()) / 2;
    }
    const double operations = 2 * pairs * static_cast<double>(keys.width + (values.data ? values.width : 0));
    const WalkResults done =
        runWalks(memory, call, input.centres.data, lists, static_cast<std::int64_t>(longest), operations, checkpoint);
    std::vector<BalancingSteps> results;
    for (std::size_t w = 0; w < lists.rules.size(); ++w) results.push_back(stepsOf(done, lists, w));
    return results;
}

} // namespace kvscope::gpu
