// Computes the policy's leverage with and without a sketch for the shown head. The budget is not needed: the view cuts
// the ranking at the budget.
#include "app/study/makers/view_data_maker.h"

#include "core/policies/compactor/compactor_log.h"
#include "core/policies/policy.h"
#include "views/leverage/leverage_data.h"

#include <algorithm>
#include <cassert>
#include <numeric>
#include <utility>

namespace kvscope {

namespace {

std::shared_ptr<const LeverageLog> runLeverage(const ViewDataWork& work, const std::string& sketch,
                                               std::int64_t columns, const Checkpoint& checkpoint) {
    RunRequest run = work.request.loggedRun(PolicySpec::parse(firstOf(PolicyFamily::Leverage) + ":exact"));
    run.budget = {Budget::Unit::Fraction, 1};
    run.policy.values.setText("sketch", sketch);
    run.policy.values.setText("sketch_size", std::to_string(columns));
    run.policy.values.setText("centred", work.request.options.flag("centred") ? "true" : "false");
    return std::dynamic_pointer_cast<const LeverageLog>(work.runner.run(run, checkpoint)->log);
}

std::vector<float> rowOf(const HostTensor& table, KvHeadIndex head) {
    const std::int64_t width = table.shape[1];
    const auto begin = table.data.begin() + head.value * width;
    return {begin, begin + width};
}

LeverageData::Scores scoresOf(const LeverageLog& log, KvHeadIndex head) {
    LeverageData::Scores out;
    out.scores = rowOf(log.leverage, head);
    out.spectrum = rowOf(log.spectrum, head);
    out.rank = log.rank[head.value];
    out.order.resize(out.scores.size());
    std::iota(out.order.begin(), out.order.end(), TokenIndex{0});
    std::ranges::stable_sort(out.order, [&](TokenIndex a, TokenIndex b) { return out.scores[a] > out.scores[b]; });
    for (const float score : out.scores) out.sum += static_cast<double>(score);
    return out;
}

struct Columns {
    std::int64_t count = 0;
    char pane = 0;
};

/// The columns asked for; else those of the active pane's sketch or of the first pane with one; else half of d.
Columns columnsFor(const ViewDataRequest& request) {
    const std::int64_t width = request.capture->info().headDim, asked = request.options.integer("sketch_size");
    if (asked > 0) return {std::min(asked, width)};
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < request.panes.size(); ++i)
        order.insert(std::cmp_equal(i, request.activePane) ? order.begin() : order.end(), i);
    for (const std::size_t i : order) {
        const ParameterValues& values = request.panes[i].run.policy.values;
        if (request.panes[i].recordedPath.empty() && values.has("sketch_size") && values.choice("sketch") != "none")
            return {std::min(values.integer("sketch_size"), width), static_cast<char>('A' + i)};
    }
    return {std::max<std::int64_t>(1, width / 2)};
}

std::string columnsKey(const ViewDataRequest& request) {
    const Columns columns = columnsFor(request);
    return std::to_string(columns.count) + (columns.pane ? std::string(1, columns.pane) : "");
}

ViewDataMaker::Value make(const ViewDataWork& work) {
    const ViewDataRequest& request = work.request;
    auto data = std::make_shared<LeverageData>();
    const Columns columns = columnsFor(request);
    data->keyDim = request.capture->info().headDim;
    data->columns = columns.count;
    data->pane = columns.pane;
    data->sketch = request.options.choice("sketch");
    data->centred = request.options.flag("centred");
    const auto exact = runLeverage(work, "none", data->columns, work.checkpoint.part(0, 0.5));
    const auto sketched = runLeverage(work, data->sketch, data->columns, work.checkpoint.part(0.5, 1));
    assert(exact && sketched);
    data->exact = scoresOf(*exact, request.kvHead);
    data->sketched = scoresOf(*sketched, request.kvHead);
    return data;
}

} // namespace

ViewDataMaker leverageMaker() {
    using enum DataScope;
    return {"leverage", {Layer, KvHead, Cut, Seed}, make, columnsKey};
}

} // namespace kvscope
