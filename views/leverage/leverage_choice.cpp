// The tokens that exact and sketched scores would keep at the active pane's budget, and the two sides of Theorem 2.
#include "views/leverage/leverage_choice.h"

#include "core/metrics/theory.h"

#include <algorithm>
#include <limits>

namespace kvscope {

namespace {

constexpr double kTheoremDelta = 0.01;

std::vector<char> bestMask(const LeverageData::Scores& scores, std::int64_t count) {
    std::vector<char> mask(scores.scores.size(), 0);
    for (std::size_t rank = 0; rank < scores.order.size() && static_cast<std::int64_t>(rank) < count; ++rank)
        mask[static_cast<std::size_t>(scores.order[rank])] = 1;
    return mask;
}

} // namespace

double LeverageChoice::shareOfBest(std::int64_t count) const {
    double sum = 0;
    for (std::size_t rank = 0; rank < data->exact.order.size() && static_cast<std::int64_t>(rank) < count; ++rank)
        sum += static_cast<double>(data->exact.scores[static_cast<std::size_t>(data->exact.order[rank])]);
    return data->exact.sum > 0 ? sum / data->exact.sum : 0;
}

LeverageChoice leverageChoice(const ViewInput& input) {
    LeverageChoice choice;
    choice.data = dataAs<LeverageData>(input);
    const PaneData* pane = activePane(input);
    if (pane && pane->result)
        choice.budget = std::ssize(pane->result->selection.heads[static_cast<std::size_t>(input.kvHead.value)].kept);
    choice.budget = std::min<std::int64_t>(choice.budget, std::ssize(choice.data->exact.scores));
    choice.exact = bestMask(choice.data->exact, choice.budget);
    choice.sketched = bestMask(choice.data->sketched, choice.budget);
    for (std::size_t i = 0; i < choice.exact.size(); ++i) {
        choice.common += choice.exact[i] && choice.sketched[i] ? 1 : 0;
        choice.withoutLeverage += choice.data->exact.scores[i] <= 0 || choice.data->sketched.scores[i] <= 0 ? 1 : 0;
    }
    return choice;
}

SketchTheorem sketchTheorem(const LeverageData& data, double epsilon) {
    SketchTheorem theorem;
    theorem.epsilon = epsilon;
    const auto& exact = data.exact;
    if (exact.rank > 0)
        theorem.factor =
            leverageRatioBounds(static_cast<double>(exact.spectrum.front()),
                                static_cast<double>(exact.spectrum[static_cast<std::size_t>(exact.rank) - 1]), epsilon)
                .high;
    theorem.demanded = sketchColumnsDemanded(static_cast<double>(exact.rank), epsilon, kTheoremDelta);
    theorem.measuredLow = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < exact.scores.size(); ++i) {
        if (exact.scores[i] <= 0) continue;
        const double ratio = static_cast<double>(data.sketched.scores[i]) / static_cast<double>(exact.scores[i]);
        theorem.measuredLow = std::min(theorem.measuredLow, ratio);
        theorem.measuredHigh = std::max(theorem.measuredHigh, ratio);
    }
    return theorem;
}

} // namespace kvscope
