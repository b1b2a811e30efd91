// Balancing walks: concatenates the lists of several walks and runs them in one launch.
#include "gpu/kernels/balancing_walk.h"

#include "core/base/error.h"
#include "gpu/primitives/primitives.h"
#include "gpu/primitives/slices.h"

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

/// Steps of one walk per launch. A walk occupies one block of threads, a small part of a GPU, and is slow on a card
/// with little double throughput.
std::int64_t stepsPerLaunch(double operationsPerStep) {
    constexpr double kOperationsOfBlock = 1e9;
    constexpr std::int64_t kStep = 64;
    return kStep * std::max<std::int64_t>(
                       1, static_cast<std::int64_t>(std::min(kOperationsOfBlock / operationsPerStep / kStep, 1e9)));
}

/// `tensors` has the keys, the values, the centres and the arithmetic.
WalkResults runWalks(const DeviceMemory& memory, const WalksCall& tensors, const WalkLists& lists, std::int64_t longest,
                     std::int64_t stepsEach, const Slices& slices) {
    const std::size_t walks = lists.rules.size(), entries = lists.rows.size();
    const DeviceList<std::int64_t> offsets(memory, lists.offsets), steps(memory, walks);
    const DeviceList<WalkRule> rules(memory, lists.rules);
    const DeviceList<std::int32_t> rows(memory, lists.rows), endings(memory, walks);
    const DeviceList<double> uniforms(memory, lists.uniforms), weights(memory, lists.weights);
    const DeviceList<std::uint8_t> silent(memory, lists.silent);
    const DeviceList<std::int8_t> signs(memory, entries);
    const DeviceList<double> products(memory, entries), diagonal(memory, entries), scratch(memory, entries);
    const DeviceList<double> margins(memory, walks);
    WalksCall call{.keys = tensors.keys,
                   .values = tensors.values,
                   .centres = tensors.centres,
                   .walks = static_cast<std::int64_t>(walks),
                   .entries = static_cast<std::int64_t>(entries),
                   .offsets = offsets.data(),
                   .rules = rules.data(),
                   .rows = rows.data(),
                   .uniforms = uniforms.data(),
                   .weights = weights.data(),
                   .silent = silent.data(),
                   .signs = signs.data(),
                   .products = products.data(),
                   .diagonal = diagonal.data(),
                   .steps = steps.data(),
                   .endings = endings.data(),
                   .margins = margins.data(),
                   .scratch = scratch.data(),
                   .arithmetic = tensors.arithmetic};
    for (; call.firstStep < longest; call.firstStep = call.endStep) {
        if (call.firstStep > 0) {
            const double share = static_cast<double>(call.firstStep) / static_cast<double>(longest);
            slices.stopPoint(share * share * static_cast<double>(walks));
        }
        call.endStep = call.firstStep + stepsEach;
        balancingWalks(call, memory.stream());
    }
    return {signs.read(memory),   products.read(memory), diagonal.read(memory),
            margins.read(memory), steps.read(memory),    endings.read(memory)};
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
                                           const float* centres, const BalancingWalks& input, Arithmetic arithmetic,
                                           const Checkpoint& checkpoint) {
    WalksCall tensors{.keys = keys, .values = values, .centres = centres};
    if (arithmetic == Arithmetic::Fast) tensors.arithmetic = KernelArithmetic::Fast;
    const auto walks = static_cast<std::int64_t>(input.walks.size());
    std::vector<BalancingSteps> results;
    std::size_t longest = 1;
    for (const BalancingWalk& walk : input.walks) longest = std::max(longest, walk.rows.size());
    // Half of a matrix of products of keys and values.
    const double perStep =
        static_cast<double>(longest) * static_cast<double>(keys.width + (values.data ? values.width : 0));
    const double operations = static_cast<double>(longest) * perStep;
    const std::int64_t most = static_cast<std::int64_t>(longest), stepsEach = stepsPerLaunch(2 * perStep);
    // Walks that need several launches are advanced together.
    const std::int64_t together = stepsEach < most ? 64 : 1;
    Slices slices(memory, checkpoint, static_cast<double>(walks));
    slices.each((walks + together - 1) / together, static_cast<double>(together),
                together > 1 ? 1 : Slices::firstOf(operations), [&](std::int64_t begin, std::int64_t end) {
                    WalkLists lists;
                    for (std::int64_t w = begin * together; w < std::min(walks, end * together); ++w)
                        lists.add(input.walks[static_cast<std::size_t>(w)]);
                    const WalkResults done = runWalks(memory, tensors, lists, most, stepsEach, slices);
                    for (std::size_t w = 0; w < lists.rules.size(); ++w) results.push_back(stepsOf(done, lists, w));
                });
    return results;
}

} // namespace kvscope::gpu
