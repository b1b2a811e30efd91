// Balancing walks: puts the lists of all walks behind one another and runs them together.
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

using Walks = std::vector<BalancingWalk>;

/// One list of all walks behind one another, with `missing` for walks that have none.
template <class T, class List>
void join(CallMemory& parts, const T*& address, const Walks& walks, List BalancingWalk::*list, T missing) {
    std::size_t entries = 0;
    for (const BalancingWalk& walk : walks) entries += walk.rows.size();
    parts.list(address, entries, [&](T* to) {
        for (const BalancingWalk& walk : walks)
            to = (walk.*list).empty() ? std::fill_n(to, walk.rows.size(), missing)
                                      : std::copy((walk.*list).begin(), (walk.*list).end(), to);
    });
}

/// The same, left out where every number is `missing`.
template <class T, class List>
void joinSome(CallMemory& parts, const T*& address, const Walks& walks, List BalancingWalk::*list, T missing) {
    const bool isNeeded = std::ranges::any_of(walks, [&](const BalancingWalk& walk) {
        return std::ranges::any_of(walk.*list, [&](auto number) { return T(number) != missing; });
    });
    if (isNeeded) join(parts, address, walks, list, missing);
}

struct WalkTables {
    std::vector<std::int64_t> offsets{0};
    std::vector<WalkRule> rules;

    explicit WalkTables(const Walks& walks) {
        for (const BalancingWalk& walk : walks) {
            assert(walk.uniforms.size() == walk.rows.size());
            rules.push_back({walk.head, walk.meanOver, walk.gamma, walk.logScale, walk.logShift, walk.valueScale,
                             walk.valueConstant, walk.failAbove, walk.firstIsPlus ? 1 : 0});
            offsets.push_back(offsets.back() + std::ssize(walk.rows));
        }
    }
};

/// Kernel output; products and diagonal where they are wanted.
struct WalkResults {
    std::vector<std::int8_t> signs;
    std::vector<double> products, diagonal, margins;
    std::vector<std::int64_t> steps;
    std::vector<std::int32_t> endings;
};

/// Runs the steps of all walks together, in launches of a multiple of 64 steps. `call` has the keys, the values and the
/// arithmetic, `operations` are those of all walks.
WalkResults runWalks(const DeviceMemory& memory, WalksCall& call, const BalancingWalks& input, const WalkTables& tables,
                     std::int64_t longest, double operations, const Checkpoint& checkpoint) {
    constexpr std::int64_t kStep = 64;
    const std::size_t walks = tables.rules.size(), entries = static_cast<std::size_t>(tables.offsets.back());
    const std::size_t logged = input.signsOnly ? 0 : entries;
    CallMemory parts(memory);
    call.walks = static_cast<std::int64_t>(walks);
    call.entries = static_cast<std::int64_t>(entries);
    join(parts, call.uniforms, input.walks, &BalancingWalk::uniforms, 0.0); // the longest list is placed first
    join(parts, call.rows, input.walks, &BalancingWalk::rows, 0);
    joinSome(parts, call.weights, input.walks, &BalancingWalk::weights, 1.0);
    joinSome(parts, call.silent, input.walks, &BalancingWalk::silent, std::uint8_t{0});
    parts.list(call.centres, input.centres.data);
    parts.list(call.offsets, tables.offsets);
    parts.list(call.rules, tables.rules);
    parts.result(call.signs, entries);
    parts.result(call.products, logged);
    parts.result(call.diagonal, logged);
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
    return {parts.read(call.signs, entries), parts.read(call.products, logged), parts.read(call.diagonal, logged),
            parts.read(call.margins, walks), parts.read(call.steps, walks),     parts.read(call.endings, walks)};
}

BalancingSteps stepsOf(const WalkResults& results, const WalkTables& tables, const BalancingWalk& walk, std::size_t w) {
    const std::int64_t begin = tables.offsets[w], end = begin + results.steps[w];
    if (results.endings[w] == static_cast<std::int32_t>(WalkEnding::NotFinite))
        throw Error({"the balancing walk of head " + std::to_string(walk.head) +
                         " meets a number that is not finite at row " +
                         std::to_string(walk.rows[static_cast<std::size_t>(results.steps[w])]),
                     "keys and values", "look for NaN or infinity in the capture's keys and values"});
    BalancingSteps steps;
    steps.signs.assign(results.signs.begin() + begin, results.signs.begin() + end);
    if (!results.products.empty()) {
        steps.products.assign(results.products.begin() + begin, results.products.begin() + end);
        steps.diagonal.assign(results.diagonal.begin() + begin, results.diagonal.begin() + end);
    }
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
    const WalkTables tables(input.walks);
    double pairs = 0; // of rows: half of a matrix of each walk
    std::size_t longest = 1;
    for (const BalancingWalk& walk : input.walks) {
        longest = std::max(longest, walk.rows.size());
        pairs += static_cast<double>(walk.rows.size()) * static_cast<double>(walk.rows.size()) / 2;
    }
    const double operations = 2 * pairs * static_cast<double>(keys.width + (values.data ? values.width : 0));
    const WalkResults done =
        runWalks(memory, call, input, tables, static_cast<std::int64_t>(longest), operations, checkpoint);
    std::vector<BalancingSteps> results;
    results.reserve(input.walks.size());
    for (std::size_t w = 0; w < input.walks.size(); ++w) results.push_back(stepsOf(done, tables, input.walks[w], w));
    return results;
}

} // namespace kvscope::gpu
