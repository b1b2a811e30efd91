// Repeats a request with different seeds. Only the select stage is random, so most policies are as fast as a dragged
// budget.
#include "app/study/makers/view_data_maker.h"

#include "core/policies/policy.h"
#include "core/run/run_grid.h"
#include "views/keep_probability/keep_probability_data.h"

#include <memory>

namespace kvscope {

namespace {

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
    data.letter = static_cast<char>('A' + request.activePane);
    const PolicyIdentity identity = policyIdentityOf(run);
    data.policyId = identity.policyId;
    data.policyName = identity.policyName;
    data.drawsRandomNumbers = !run.recorded && policyById(data.policyId).card().usesSeed;
    const ParameterValues& values = run.policy.values;
    data.sketchIsExact = !run.recorded && values.has("sketch_size") && values.choice("sketch") != "none" &&
                         values.integer("sketch_size") >= request.capture->info().headDim;
    data.firstSeed = run.seed;
    data.seedsAsked = data.drawsRandomNumbers ? static_cast<int>(request.options.integer("seeds")) : 1;
    std::vector<GridPoint> points;
    for (int i = 0; i < data.seedsAsked; ++i) {
        run.seed = data.firstSeed + static_cast<std::uint64_t>(i);
        points.push_back({run});
    }
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
