// What an exported figure says of its origin: layer and head, cut, and how the panes' results came about.
#include "views/common/provenance.h"

#include "views/common/view_facts.h"
#include "views/scene/axes.h"

#include <fmt/format.h>

#include <algorithm>

namespace kvscope {

std::string provenance(const ViewInput& input, const std::vector<const PaneData*>& panes, bool wholeModel) {
    return provenanceOf(wholeModel
                            ? std::string()
                            : fmt::format("layer {}, KV head {} (0-based)", input.layer.value, input.kvHead.value),
                        input, panes);
}

std::string provenanceOf(const std::string& place, const ViewInput& input, const std::vector<const PaneData*>& panes) {
    std::string text = place + (place.empty() ? "cut: " : " · cut: ") + input.cut.label;
    const auto isFast = [](const PaneData* pane) {
        return pane->result && pane->result->arithmetic.starts_with("fast");
    };
    const auto isSimulated = [](const PaneData* pane) { return pane->result && pane->result->simulated; };
    const bool fast = std::ranges::any_of(panes, isFast);
    const bool allSimulated = !panes.empty() && std::ranges::all_of(panes, isSimulated);
    for (const PaneData* pane : panes) {
        if (!pane->result) continue;
        const RunResult& result = *pane->result;
        const std::string who = panes.size() > 1 ? std::string(1, pane->letter) + " " : "";
        if (result.request.cut.token != input.cut.token)
            text += fmt::format(" · {}with its own cut: {}", who, result.request.cut.label);
        if (result.request.recorded)
            text += fmt::format(" · {}recorded with a budget of {}", who, budgetWords(result.request.budget));
        if (result.selection.perQueryHead()) text += fmt::format(" · {}kept: union of the group's query heads", who);
        if (result.simulated && !allSimulated) text += fmt::format(" · {}simulated on full-attention tensors", who);
        if (result.calibrated)
            text += fmt::format(" · {}{} kept for tau = {}{}", who, formatPercent(result.calibrated->retention),
                                result.calibrated->asked.value, result.calibrated->proxy ? " by proxy" : "");
    }
    if (allSimulated) text += " · simulated on full-attention tensors";
    return fast ? "fast arithmetic · " + text : text; // in front, because a narrow figure cuts the end off
}

} // namespace kvscope
