// What the quantities of lessons share: the pane's run and the tensors of its layer.
#include "app/lessons/lesson_asked.h"

#include "core/engine/engine.h"
#include "core/metrics/fidelity.h"

#include <fmt/format.h>

namespace kvscope {

const PaneRequest& paneOf(const LessonAsked& asked) {
    if (asked.pane >= asked.request.panes.size())
        throw Error(
            {fmt::format("the question is about pane {}, which is not there", static_cast<char>('A' + asked.pane)), "",
             "Open the lesson again"});
    return asked.request.panes[asked.pane];
}

std::shared_ptr<const RunResult> runOf(const LessonAsked& asked, bool steps) {
    RunRequest run = resolvePane(paneOf(asked));
    run.recordSteps = steps;
    return asked.runner.run(run, asked.checkpoint);
}

std::size_t headOf(const LessonAsked& asked) { return static_cast<std::size_t>(asked.request.kvHead.value); }

const LayerInfo& layerOf(const LessonAsked& asked) {
    return asked.request.capture->info().layerInfo(asked.request.layer);
}

std::vector<std::size_t> queryHeadsOf(const LessonAsked& asked) {
    std::vector<std::size_t> heads;
    const auto& groups = layerOf(asked).gqaGroupOf;
    for (std::size_t q = 0; q < groups.size(); ++q)
        if (groups[q] == asked.request.kvHead.value) heads.push_back(q);
    return heads;
}

Tensor tensorOf(const LessonAsked& asked, TensorRole role) {
    return asked.runner.tensor(asked.request.capture, asked.request.layer, role, asked.checkpoint);
}

Tensor rowsBeforeCut(const LessonAsked& asked, TensorRole role) {
    const Tensor all = tensorOf(asked, role);
    const std::int64_t missing = asked.request.capture->info().numTokens - all.size(1);
    return asked.runner.engine().rows(all, 0, asked.request.cut.token - missing);
}

Tensor evaluationQueries(const LessonAsked& asked, const Fidelity& fidelity) {
    const std::int64_t first =
        fidelity.firstQuery - (asked.request.capture->info().numTokens - layerOf(asked).queryCount);
    return asked.runner.engine().rows(tensorOf(asked, TensorRole::Queries), first, first + fidelity.queryCount);
}

} // namespace kvscope
