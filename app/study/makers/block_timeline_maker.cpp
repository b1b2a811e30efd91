// Block processing: the mean of the cached keys drifts away from the mean of all keys read, and the final kept set
// depends on the block size. Both are measured here.
#include "app/study/makers/view_data_maker.h"

#include "core/engine/engine.h"
#include "core/metrics/fidelity.h"
#include "core/run/head_means.h"
#include "core/run/run_grid.h"
#include "views/block_timeline/block_timeline_data.h"

#include <cmath>
#include <memory>
#include <numeric>

namespace kvscope {

namespace {

using Vector = std::vector<double>;

double dot(const Vector& a, const Vector& b) { return std::inner_product(a.begin(), a.end(), b.begin(), 0.0); }

/// Running sums of the keys of one head: of all that were read, and of those that were not evicted.
class AnchorDrift {
public:
    AnchorDrift(HostTensor keys, std::int64_t head)
        : m_keys(std::move(keys)), m_head(head), m_all(width()), m_cache(width()) {}

    BlockTimelineData::Drift at(const BlockStep& step) {
        for (; m_read < step.end; ++m_read) {
            add(m_all, m_read, 1);
            add(m_cache, m_read, 1);
        }
        BlockTimelineData::Drift drift{step.end, 1, 1};
        const double all = std::sqrt(dot(m_all, m_all)), cache = std::sqrt(dot(m_cache, m_cache));
        if (all > 0 && cache > 0) {
            drift.cosine = dot(m_all, m_cache) / (all * cache);
            drift.ratio = cache / static_cast<double>(step.cached) / (all / static_cast<double>(step.end));
        }
        for (const TokenIndex token : step.evicted[m_head]) add(m_cache, token, -1);
        return drift;
    }

private:
    std::size_t width() const { return static_cast<std::size_t>(m_keys.shape[2]); }
    void add(Vector& sum, TokenIndex token, double sign) const {
        const auto row = static_cast<std::size_t>(m_head * m_keys.shape[1] + token) * width();
        for (std::size_t c = 0; c < sum.size(); ++c) sum[c] += sign * static_cast<double>(m_keys.data[row + c]);
    }

    HostTensor m_keys; ///< [Hkv, n, d]
    std::int64_t m_head;
    Vector m_all, m_cache;
    TokenIndex m_read = 0;
};

void addDrift(BlockTimelineData& data, const ViewDataWork& work, RunRequest run) {
    const LayerRunner& runner = work.runner;
    const ViewDataRequest& request = work.request;
    run.measure = false;
    const auto result = runner.run(run, work.checkpoint.part(0, 0.5));
    if (result->steps.empty()) return;
    const Tensor keys = work.tensor(TensorRole::Keys, work.checkpoint.part(0.5, 1));
    AnchorDrift drift(runner.engine().download(runner.engine().rows(keys, 0, result->visible)), request.kvHead.value);
    for (const BlockStep& step : result->steps) data.drift.push_back(drift.at(step));
}

/// The whole prompt, then powers of two that give between 2 and 64 blocks.
std::vector<std::int64_t> blockSizes(std::int64_t tokens) {
    std::vector<std::int64_t> sizes = {0};
    for (std::int64_t size = 1; 2 * size <= tokens; size *= 2)
        if (64 * size >= tokens) sizes.push_back(size);
    return sizes;
}

void addSizes(BlockTimelineData& data, const ViewDataWork& work, RunRequest run) {
    const ViewDataRequest& request = work.request;
    run.measure = true;
    const std::vector<std::int64_t> sizes = blockSizes(run.cut.token);
    std::vector<GridPoint> points;
    for (const std::int64_t size : sizes) {
        run.policy.values.set("prompt_block", static_cast<double>(size));
        points.push_back({run});
    }
    const LayerInfo& layer = request.capture->info().layerInfo(request.layer);
    std::vector<TokenIndex> atOnce;
    const auto finished = [&](std::size_t point, const auto& result, const Checkpoint&) {
        const std::vector<TokenIndex>& kept = result->selection.heads[request.kvHead.value].kept;
        if (point == 0) atOnce = kept;
        data.sizes.push_back({sizes[point],
                              meanOverHeads(requireFidelity(*result).meanOutputError, layer, request.kvHead),
                              jaccard(kept, atOnce), std::ssize(result->steps)});
        work.deliver(data);
    };
    runGrid(work.runner, points, work.checkpoint, {finished});
}

ViewDataMaker::Value make(const ViewDataWork& work) {
    BlockTimelineData data;
    const std::string& picture = work.request.options.choice("picture");
    if (picture != "timeline" && !work.request.panes.empty()) {
        const RunRequest run = resolvePane(work.request.shownPane());
        const bool inBlocks = !run.recorded && run.policy.values.has("prompt_block");
        if (inBlocks && picture == "drift")
            addDrift(data, work, run);
        else if (inBlocks)
            addSizes(data, work, run);
    }
    return std::make_shared<const BlockTimelineData>(data);
}

} // namespace

ViewDataMaker blockTimelineMaker() {
    using enum DataScope;
    return {"block_timeline", {Layer, KvHead, Cut, ActivePane, Seed}, make};
}

} // namespace kvscope
