// Repeats a request with different seeds. Only the select stage is random, so most policies are as fast as a dragged
// budget.
#include "app/study/makers/view_data_maker.h"

#include "core/policies/policy.h"
#include "core/run/run_grid.h"
#include "views/keep_probability/keep_probability_data.h"

#include <atomic>
#include <memory>
#include <string>
#include <vector>

namespace kvscope {

namespace {

/// Forwards the numbers of another source and notes whether another seed would have given other numbers. A file gives
/// the same numbers to every seed, but it may hold only one of the two kinds that a policy draws.
class SeedWatch final : public RandomSource {
public:
    explicit SeedWatch(std::shared_ptr<const RandomSource> source) : m_source(std::move(source)) {
        static std::atomic<int> watches = 0;
        m_id = "watched " + std::to_string(++watches) + "|" + m_source->id(); // no cached result replaces the run
    }

    double uniform(const RandomKey& key) const override {
        const double value = m_source->uniform(key);
        if (!m_usesSeed && m_source->uniform(otherSeed(key)) != value) m_usesSeed = true;
        return value;
    }
    std::vector<double> sketch(const RandomKey& key, std::int64_t rows, std::int64_t columns) const override {
        std::vector<double> entries = m_source->sketch(key, rows, columns);
        if (!m_usesSeed && m_source->sketch(otherSeed(key), rows, columns) != entries) m_usesSeed = true;
        return entries;
    }
    std::string id() const override { return m_id; }

    bool usesSeed() const { return m_usesSeed; }

private:
    static RandomKey otherSeed(RandomKey key) {
        ++key.seed;
        return key;
    }

    std::shared_ptr<const RandomSource> m_source;
    std::string m_id;
    mutable std::atomic<bool> m_usesSeed = false;
};

/// Whether the files that the run replays hold every random number that it draws.
bool isReplayed(const LayerRunner& runner, RunRequest run, const Checkpoint& checkpoint) {
    const auto watch = std::make_shared<const SeedWatch>(run.random);
    run.random = watch;
    runner.run(run, checkpoint);
    return !watch->usesSeed();
}

void addList(KeepProbabilityData& data, const RunResult& result, KvHeadIndex head) {
    const std::vector<TokenIndex>& kept = result.selection.heads[head.value].kept;
    data.visible = result.visible;
    data.times.resize(static_cast<std::size_t>(result.visible), 0);
    for (const TokenIndex token : kept) ++data.times[token];
    data.lists.push_back(kept);
}

ViewDataMaker::Value make(const ViewDataWork& work) {
    const ViewDataRequest& request = work.request;
    RunRequest run = resolvePane(request.shownPane());
    run.measure = false;
    KeepProbabilityData data;
    static_cast<PaneName&>(data) = policyIdentityOf(run, static_cast<std::size_t>(request.activePane));
    data.drawsRandomNumbers = !run.recorded && policyById(data.policyId).card().usesSeed;
    if (data.drawsRandomNumbers && run.random) {
        data.replayed = isReplayed(work.runner, run, work.checkpoint);
        data.drawsRandomNumbers = !data.replayed;
    }
    const ParameterValues& values = run.policy.values;
    data.sketchIsExact = !run.recorded && values.has("sketch_size") && values.choice("sketch") != "none" &&
                         values.integer("sketch_size") >= request.capture->info().headDim;
    data.seedsAsked = data.drawsRandomNumbers ? static_cast<int>(request.options.integer("seeds")) : 1;
    std::vector<GridPoint> points;
    for (int i = 0; i < data.seedsAsked; ++i, ++run.seed) points.push_back({run});
    const auto finished = [&](std::size_t, const auto& result, const Checkpoint&) {
        addList(data, *result, request.kvHead);
        work.deliver(data);
    };
    runGrid(work.runner, points, work.checkpoint, {finished});
    return std::make_shared<const KeepProbabilityData>(data);
}

} // namespace

ViewDataMaker keepProbabilityMaker() {
    using enum DataScope;
    return {"keep_probability", {Layer, KvHead, Cut, ActivePane}, make};
}

} // namespace kvscope
