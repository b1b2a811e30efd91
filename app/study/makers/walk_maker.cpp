// Runs BalanceKV with its step log, selects the requested walks, and computes the band of fair coins on the same
// kernels for comparison.
#include "app/study/makers/view_data_maker.h"

#include "app/study/makers/balance_panes.h"
#include "core/engine/engine.h"
#include "core/policies/balance/balance_tree.h"
#include "core/policies/policy.h"
#include "core/run/head_means.h"
#include "views/common/balance_words.h"
#include "views/scene/axes.h"
#include "views/walk/walk_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace kvscope {

namespace {

constexpr std::array kFamilies = {PolicyFamily::BalanceRounds, PolicyFamily::BalanceTree};
constexpr std::size_t kMostEntries = std::size_t{1} << 24; // of all kernels together
constexpr std::size_t kMostCells = 512;                    // a side of a pooled kernel

/// The bucket of the requested walks of values: the octave that is set, else that of the fullest tree.
int bucketFor(const WalkData& data, const ParameterValues& options, std::int64_t head) {
    if (options.choice("tree") == "octave") return static_cast<int>(options.integer("octave"));
    std::size_t most = 0;
    int bucket = 0;
    for (const BalanceTree& tree : data.log->stream->trees)
        if (tree.kvHead == head && tree.numerator && tree.rows.size() > most) {
            most = tree.rows.size();
            bucket = tree.bucket;
        }
    return bucket;
}

std::string wordsOf(const WalkData& data, bool values, int bucket) {
    if (!data.streaming) return fmt::format("round {}", data.level);
    return fmt::format("{} → {}, {}", setName(data.level - 1), setName(data.level),
                       values ? "values with " + octaveText(bucket) : "keys of the denominator");
}

void pickWalks(WalkData& data, const RunResult& result, const ViewDataRequest& request) {
    const std::int64_t head = request.kvHead.value;
    const bool values = data.streaming && request.options.choice("tree") != "keys";
    const int bucket = values ? bucketFor(data, request.options, head) : 0;
    data.level = request.options.integer("level");
    data.chosen = static_cast<int>(request.options.integer("block"));
    data.what = wordsOf(data, values, bucket);
    std::int64_t levels = 0, blocks = 0;
    for (const BalanceWalkLog& walk : data.log->walks) {
        if (walk.kvHead != head || (walk.tree == 1) != values || walk.bucket != bucket) continue;
        levels = std::max(levels, walk.level);
        if (walk.level != data.level) continue;
        ++blocks;
        if (data.chosen < 0 || walk.place == data.chosen) data.walks.push_back({&walk, {}, {}, 0, 0});
    }
    std::ranges::sort(data.walks, [](const auto& a, const auto& b) { return a.log->place < b.log->place; });
    if (!data.walks.empty()) return;
    if (blocks > 0)
        data.whyNone = fmt::format("{} has blocks 0 to {}. Choose one of them, or −1 to follow the cursor.", data.what,
                                   blocks - 1);
    else if (levels > 0)
        data.whyNone = fmt::format("There is no {}: the last one is {}. Choose a smaller {}.", data.what, levels,
                                   data.streaming ? "level" : "round");
    else if (data.streaming)
        data.whyNone =
            "No batch of this tree is full, so nothing is balanced. Choose a smaller batch t, or another tree.";
    else if (data.standIn && balancedNothing(result))
        data.whyNone =
            "The example, BalanceKV at a quarter, balances nothing here: its sinks and recents take the whole "
            "budget. Add a pane with BalanceKV, and choose fewer of them.";
    else if (balancedNothing(result))
        data.whyNone = fmt::format("Sinks and recents take the whole budget of {}: nothing was balanced. Choose "
                                   "a larger budget, or fewer sinks and recents.",
                                   formatCounted(result.requested, "token"));
    else if (result.request.policy.values.integer("rounds") == 0)
        data.whyNone = "With 0 rounds nothing is balanced. Choose more rounds, or −1 for as many as the budget needs.";
    else
        data.whyNone = "The budget holds every token: nothing is balanced. Choose a smaller budget.";
}

/// The entry of largest magnitude in each of at most kMostCells x kMostCells cells, and the colour range.
void poolKernel(WalkData::Walk& walk, const std::vector<double>& kernel) {
    const std::size_t m = walk.log->tokens.size(), side = std::min(m, kMostCells);
    walk.side = static_cast<std::int64_t>(side);
    walk.kernel.assign(side * side, 0);
    std::vector<double> sizes;
    for (std::size_t i = 0; i < m; ++i)
        for (std::size_t j = 0; j < m; ++j) {
            float& cell = walk.kernel[i * side / m * side + j * side / m];
            const auto entry = static_cast<float>(kernel[i * m + j]);
            if (std::abs(entry) > std::abs(cell)) cell = entry;
            if (i < j) sizes.push_back(std::abs(kernel[i * m + j]));
        }
    if (sizes.empty()) sizes.push_back(std::abs(kernel.front()));
    const auto place = sizes.begin() + static_cast<std::ptrdiff_t>(0.995 * static_cast<double>(sizes.size() - 1));
    std::nth_element(sizes.begin(), place, sizes.end());
    walk.range = *place > 0 ? *place : 1;
}

/// Centre of the walk's head, where all walks share it.
std::vector<float> centreOf(const WalkData& data, std::int64_t head) {
    const HostTensor& all = data.log->centres;
    if (all.empty()) return {};
    const auto begin = all.data.begin() + head * all.shape[1];
    return {begin, begin + all.shape[1]};
}

void tossCoins(WalkData& data, const ViewDataWork& work, const Checkpoint& checkpoint) {
    const ViewDataRequest& request = work.request;
    const auto head = [&](TensorRole role) {
        return downloadHead(work.runner.engine(), work.tensor(role, checkpoint.silent()), request.kvHead.value);
    };
    const HostTensor keys = head(TensorRole::Keys);
    const bool valuesCount = !data.streaming || request.options.choice("tree") != "keys";
    const HostTensor values = valuesCount ? head(TensorRole::Values) : HostTensor{};
    const std::vector<float> centre = centreOf(data, request.kvHead.value);
    for (std::size_t i = 0; i < data.walks.size(); ++i) {
        checkpoint.at(static_cast<double>(i), static_cast<double>(data.walks.size()));
        WalkData::Walk& walk = data.walks[i];
        const std::vector<double> kernel = walkKernel(walk.log->walk, keys, values, centre);
        if (data.coinRuns > 0) walk.band = coinBand(kernel, walk.log->walk.silent, data.seed, data.coinRuns);
        poolKernel(walk, kernel);
    }
}

std::string standInWith(double gain) {
    return firstOf(kFamilies.front()) + fmt::format(",sink=32,recent=32,gamma={:.2g}@0.25", gain);
}

/// The gain at which the example's p visibly differs from 1/2: with the papers' constants p is 1/2 throughout or leaves
/// [0, 1] at every step. At this gain p reaches 0 or 1 where |y^T eta| is at its 99th percentile under fair coins.
double exampleGain(const BalanceLog& coins, std::int64_t head) {
    std::vector<double> sizes;
    for (const BalanceWalkLog& walk : coins.walks)
        if (walk.kvHead == head && walk.level == 1)
            for (const double product : walk.products) sizes.push_back(std::abs(product));
    if (sizes.empty()) return 0;
    const auto place = sizes.begin() + static_cast<std::ptrdiff_t>(0.99 * static_cast<double>(sizes.size() - 1));
    std::nth_element(sizes.begin(), place, sizes.end());
    return *place > 0 ? std::min(16.0, 1 / (2 * *place)) : 0;
}

ShownRun runToShow(const ViewDataWork& work) {
    ShownRun shown = shownRun(work.request, kFamilies, standInWith(0));
    if (!shown.standIn) return shown;
    const auto coins = work.runner.run(shown.run, work.checkpoint.silent());
    const double gain = exampleGain(dynamic_cast<const BalanceLog&>(*coins->log), work.request.kvHead.value);
    shown = shownRun(work.request, kFamilies, standInWith(gain));
    shown.source += "; the gain is chosen from the data";
    return shown;
}

ViewDataMaker::Value make(const ViewDataWork& work) {
    const ViewDataRequest& request = work.request;
    const ShownRun shown = runToShow(work);
    const auto result = work.runner.run(shown.run, work.checkpoint.part(0, 0.3));
    auto data = std::make_shared<WalkData>();
    data->policy = shown.run.policy.policy;
    data->source = shown.source;
    data->standIn = shown.standIn;
    data->log = std::dynamic_pointer_cast<const BalanceLog>(result->log);
    data->streaming = data->log->stream != nullptr;
    data->end = static_cast<TokenIndex>(result->visible);
    data->coinRuns = static_cast<int>(request.options.integer("coins"));
    data->seed = shown.run.seed;
    pickWalks(*data, *result, request);
    std::size_t entries = 0;
    for (const WalkData::Walk& walk : data->walks) entries += walk.log->tokens.size() * walk.log->tokens.size();
    if (entries > kMostEntries)
        data->whyNoKernel =
            fmt::format("{} blocks at once are too many for kernels and coins: choose one block", data->walks.size());
    if (data->walks.empty() || entries > kMostEntries) return data;
    work.deliver(*data);
    tossCoins(*data, work, work.checkpoint.part(0.3, 1));
    return data;
}

} // namespace

ViewDataMaker walkMaker() {
    using enum DataScope;
    return {"walk", {Layer, KvHead, Cut, Panes, ActivePane, Seed}, make};
}

} // namespace kvscope
