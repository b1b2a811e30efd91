// The steps were written down by block processing itself; here they become sentences with their numbers filled in.
#include "views/block_timeline/block_step_sequence.h"

#include "core/policies/block_processing.h"
#include "views/common/step_cursor.h"
#include "views/common/view_facts.h"
#include "views/scene/axes.h"

#include <fmt/format.h>

#include <algorithm>

namespace kvscope {

namespace {

const std::vector<TokenIndex>& evictedIn(const BlockStep& step, const ViewInput& input) {
    return step.evicted[static_cast<std::size_t>(input.kvHead.value)];
}

std::int64_t common(const std::vector<TokenIndex>& ascending, const std::vector<TokenIndex>& tokens) {
    return std::count_if(tokens.begin(), tokens.end(),
                         [&](TokenIndex t) { return std::binary_search(ascending.begin(), ascending.end(), t); });
}

/// " Needle: 14 of 16 are still there." about the selected tokens that were read.
std::string aboutSelection(const ViewInput& input, const RunResult& result, std::size_t events) {
    const TokenIndex read = result.steps[events - 1].end;
    std::int64_t seen =
        std::count_if(input.focus.selected.begin(), input.focus.selected.end(), [&](TokenIndex t) { return t < read; });
    if (seen == 0) return {};
    std::int64_t lost = 0;
    for (std::size_t i = 0; i < events; ++i) lost += common(evictedIn(result.steps[i], input), input.focus.selected);
    std::string word = selectionWord(input.focus);
    word.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(word.front())));
    return fmt::format(" {}: {} of {} still there.", word, seen - lost, seen);
}

} // namespace

TokenIndex blockBegin(const RunResult& result, const BlockStep& step) {
    const auto ends = blockEnds(result.request.policy.values, result.visible, result.requested);
    const auto own = std::lower_bound(ends.begin(), ends.end(), step.end);
    return own == ends.begin() ? 0 : *(own - 1);
}

StepSequence blockStepSequence(const ViewInput& input, const PaneData& pane) {
    StepSequence sequence;
    sequence.title = letteredName(pane) + ": the prompt in blocks";
    for (const BlockStep& step : pane.result->steps) {
        sequence.events.push_back(step.end);
        if (common(evictedIn(step, input), input.focus.selected) > 0) sequence.milestones.push_back(step.end);
    }
    return sequence;
}

std::string blockCaption(const ViewInput& input, const PaneData& pane) {
    const RunResult& result = *pane.result;
    const StepSequence sequence = blockStepSequence(input, pane);
    const std::size_t events = eventsUntil(sequence.events, input.cursor);
    if (events == 0)
        return fmt::format("Up to token {} the cache holds all: the budget of {} tokens is not exceeded before.",
                           formatCount(*input.cursor), formatCount(result.requested));
    const BlockStep& step = result.steps[events - 1];
    const TokenIndex begin = blockBegin(result, step);
    const auto& evicted = evictedIn(step, input);
    const auto leaving = std::ssize(evicted);
    const auto own = std::count_if(evicted.begin(), evicted.end(), [&](TokenIndex t) { return t >= begin; });
    return fmt::format("Tokens {} to {} enter, the cache holds {}. It goes back to {}: {} leave, {} of them came in "
                       "with this block.{}",
                       formatCount(begin), formatCount(step.end - 1), formatCount(step.cached),
                       formatCount(step.cached - leaving), formatCount(leaving), formatCount(own),
                       aboutSelection(input, result, events));
}

} // namespace kvscope
