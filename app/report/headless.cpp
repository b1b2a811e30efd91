// The same requests as the window makes, so that a figure on paper is the picture on the screen.
#include "app/report/headless.h"

#include "app/study/makers/all_makers.h"

#include <algorithm>
#include <numeric>

namespace kvscope {

namespace {

PaneRequest requestOf(const Session& session, std::size_t pane, const ViewInput& input,
                      std::shared_ptr<const RandomSource> random) {
    PaneRequest request{{}, session.panes[pane].recordedPath};
    request.run.capture = input.capture;
    request.run.layer = input.layer;
    request.run.policy = session.panes[pane].policy;
    request.run.budget = effectiveBudget(session, pane);
    request.run.policy.budget.reset();
    request.run.cut = input.cut;
    request.run.seed = session.seed;
    request.run.random = std::move(random);
    return request;
}

PaneData runPane(std::size_t pane, const PaneRequest& request, const LayerRunner& runner,
                 const Checkpoint& checkpoint) {
    const RunRequest run = resolvePane(request, true);
    PaneData data;
    data.letter = static_cast<char>('A' + pane);
    const PolicyIdentity identity = policyIdentityOf(run);
    data.policyId = identity.policyId;
    data.policyName = identity.policyName;
    data.variant = identity.variant;
    data.result = runner.run(run, checkpoint);
    return data;
}

} // namespace

std::vector<std::size_t> allPanesOf(const Session& session) {
    std::vector<std::size_t> panes(session.panes.size());
    std::iota(panes.begin(), panes.end(), std::size_t{0});
    return panes;
}

ViewInput headlessInput(const Session& session, std::shared_ptr<const CaptureReader> capture,
                        const std::vector<std::size_t>& wanted, const LayerRunner& runner, const Checkpoint& checkpoint,
                        std::shared_ptr<const RandomSource> random) {
    ViewInput input;
    input.capture = std::move(capture);
    input.layer = input.capture->info().layerInfo(session.layer).layer;
    input.kvHead = session.kvHead;
    input.queryHead = session.queryHead;
    input.cut = Cut::resolve(session.cut, *input.capture);
    input.focus.selected = session.selected;
    input.focus.selectionName = session.selectionName;
    input.cursor = session.look.cursor;
    for (std::size_t pane = 0; pane < session.panes.size(); ++pane) {
        const auto total = static_cast<double>(session.panes.size()), from = static_cast<double>(pane);
        const bool asked = std::find(wanted.begin(), wanted.end(), pane) != wanted.end();
        const Checkpoint part = checkpoint.part(from / total, (from + 1) / total);
        input.panes.push_back(asked ? runPane(pane, requestOf(session, pane, input, random), runner, part)
                                    : PaneData{});
    }
    const auto active = std::find(wanted.begin(), wanted.end(), static_cast<std::size_t>(session.activePane));
    input.activePane = wanted.empty() ? 0 : static_cast<int>(active != wanted.end() ? *active : wanted.front());
    return input;
}

DataState headlessData(const Session& session, const View& view, const ViewInput& input,
                       std::optional<Viewport::Range> range, std::int64_t width, std::int64_t height,
                       const LayerRunner& runner, const Checkpoint& checkpoint,
                       std::shared_ptr<const RandomSource> random) {
    const ViewDataMaker* maker = makerFor(view);
    if (!maker)
        return {};
    ViewDataRequest request{.capture = input.capture,
                            .layer = input.layer,
                            .kvHead = input.kvHead,
                            .queryHead = input.queryHead,
                            .cut = input.cut,
                            .panes = {},
                            .activePane = input.activePane,
                            .selected = session.selected,
                            .seed = session.seed,
                            .options = viewOptions(session, view),
                            .range = range,
                            .width = width,
                            .height = height};
    for (std::size_t pane = 0; pane < session.panes.size(); ++pane)
        request.panes.push_back(requestOf(session, pane, input, random));
    return {.value = maker->make(runner, request, checkpoint, [](const auto&) {}),
            .computing = false,
            .progress = 1,
            .error = {}};
}

} // namespace kvscope
