#pragma once

#include "app/study/makers/view_data_maker.h"
#include "core/base/error.h"

#include <cstddef>
#include <memory>
#include <vector>

namespace kvscope {

/// One pane of a request, and what computes its numbers.
struct LessonAsked {
    const LayerRunner& runner;
    const ViewDataRequest& request;
    std::size_t pane;
    const Checkpoint& checkpoint;
};

/// The pane that is asked about. Throws Error where the session has no pane of that number.
const PaneRequest& paneOf(const LessonAsked& asked);
/// The pane's result.
std::shared_ptr<const RunResult> runOf(const LessonAsked& asked, bool steps = false);
std::size_t headOf(const LessonAsked& asked); ///< the KV head
const LayerInfo& layerOf(const LessonAsked& asked);
/// The query heads that read the KV head.
std::vector<std::size_t> queryHeadsOf(const LessonAsked& asked);

Tensor tensorOf(const LessonAsked& asked, TensorRole role);
/// The rows before the cut, [H, cut, d]; of queries those that were captured.
Tensor rowsBeforeCut(const LessonAsked& asked, TensorRole role);
/// [Hq, w, d].
Tensor evaluationQueries(const LessonAsked& asked, const Fidelity& fidelity);

/// The step log of a result, of the kind that a question is about. Throws Error where the policy wrote another.
template <class Log> std::shared_ptr<const Log> logOf(const std::shared_ptr<const RunResult>& result) {
    auto log = std::dynamic_pointer_cast<const Log>(result->log);
    if (!log)
        throw Error({"this pane's policy wrote down no steps of the kind that the question is about", "",
                     "Open the lesson again"});
    return log;
}

} // namespace kvscope
