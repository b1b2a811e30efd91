// The requests of a session, for screen and paper alike: names of panes and inputs of views.
#include "app/study/session_requests.h"

#include "core/base/error.h"
#include "core/base/random_source.h"
#include "core/run/record_results.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

namespace kvscope {

PaneRequest paneRequestOf(const Session& session, std::size_t pane, std::shared_ptr<const CaptureReader> capture,
                          const Cut& cut, std::shared_ptr<const RandomSource> random) {
    PaneRequest request{{}, session.panes[pane].recordedPath};
    request.run.capture = std::move(capture);
    request.run.layer = session.layer;
    request.run.policy = session.panes[pane].policy;
    request.run.policy.budget.reset();
    request.run.budget = effectiveBudget(session, pane);
    request.run.cut = cut;
    request.run.seed = session.seed;
    request.run.random = std::move(random);
    request.isSecond = session.isSecond;
    return request;
}

ViewDataRequest dataRequestOf(const Session& session, const std::shared_ptr<const CaptureReader>& capture,
                              const Cut& cut, const std::shared_ptr<const RandomSource>& random) {
    ViewDataRequest request;
    request.capture = capture;
    request.layer = session.layer;
    request.kvHead = session.kvHead;
    request.queryHead = session.queryHead;
    request.cut = cut;
    for (std::size_t pane = 0; pane < session.panes.size(); ++pane)
        request.panes.push_back(paneRequestOf(session, pane, capture, cut, random));
    request.activePane = session.activePane;
    request.selected = session.selected;
    request.seed = session.seed;
    return request;
}

ViewDataRequest dataRequestFor(const View& view, const Session& session, ViewDataRequest request, std::int64_t width,
                               std::int64_t height) {
    request.options = viewOptions(session, view);
    request.range = shownRange(session, view);
    request.width = width;
    request.height = height;
    return request;
}

PaneData paneDataOf(const Session& session, std::size_t pane, std::shared_ptr<const RunResult> result) {
    const SessionPane& spec = session.panes[pane];
    PaneData data;
    PaneName& name = data;
    if (spec.recordedPath.empty())
        name = policyIdentityOf(spec.policy, pane);
    else if (result && result->request.recorded)
        name = policyIdentityOf(result->request, pane);
    else
        name = {static_cast<char>('A' + pane), "", std::filesystem::path(spec.recordedPath).filename().string(),
                "recorded"};
    if (!result || result->request.layer != session.layer) return data;
    if (leavesOut(*result, session.kvHead.value)) // nobody knows what it keeps: no picture is better than an empty one
        data.error =
            Error({fmt::format("the list leaves out KV head {} of layer {}", session.kvHead.value, session.layer.value),
                   "kv_head", "Choose another head", spec.recordedPath})
                .what();
    else
        data.result = std::move(result);
    return data;
}

ViewInput viewInputOf(const Session& session, std::shared_ptr<const CaptureReader> capture,
                      const std::optional<Cut>& cut) {
    ViewInput input;
    input.capture = std::move(capture);
    input.layer = session.layer;
    input.kvHead = session.kvHead;
    input.queryHead = session.queryHead;
    if (cut) input.cut = *cut;
    input.activePane = session.activePane;
    input.cursor = session.look.cursor;
    input.focus.selected = session.selected;
    input.focus.selectionName = session.selectionName;
    return input;
}

std::vector<QueryHeadIndex> headsOf(const View& view, const LayerInfo& layer) {
    const ViewDataMaker* maker = makerFor(view);
    const auto has = [&](DataScope scope) { return maker && std::ranges::count(maker->scopes, scope) > 0; };
    const bool ofQueries = has(DataScope::QueryHead) && !view.card().perPane; // panes have kept lists of KV heads
    if (maker && !ofQueries && !has(DataScope::KvHead)) return {};
    std::vector<QueryHeadIndex> heads;
    for (int head = 0; head < std::ssize(layer.gqaGroupOf); ++head) heads.emplace_back(head);
    const auto group = [&](QueryHeadIndex head) { return layer.gqaGroupOf[static_cast<std::size_t>(head.value)]; };
    std::ranges::stable_sort(heads, {}, group);
    const auto isSameGroup = [&](QueryHeadIndex a, QueryHeadIndex b) { return group(a) == group(b); };
    if (!ofQueries) heads.erase(std::unique(heads.begin(), heads.end(), isSameGroup), heads.end());
    return heads;
}

} // namespace kvscope
