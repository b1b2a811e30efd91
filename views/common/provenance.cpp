// What an exported figure says of its origin: layer and head, cut, and how the panes' results came about.
#include "core/run/run.h"
#include "views/common/view_facts.h"
#include "views/scene/axes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

namespace kvscope {

std::string provenance(const ViewInput& input, const std::vector<const PaneData*>& panes, bool wholeModel) {
    return provenanceOf(wholeModel
                            ? std::string()
                            : fmt::format("layer {}, KV head {} (0-based)", input.layer.value, input.kvHead.value),
                        input, panes);
}

std::string provenanceOf(const std::string& place, const ViewInput& input, const std::vector<const PaneData*>& panes) {
    std::string marks; // in front, because a narrow figure cuts the end off
    const auto mark = [&](const char* words, const auto& isMarked) {
        std::vector<char> letters;
        std::size_t results = 0;
        for (const PaneData* pane : panes) {
            if (!pane->result) continue;
            ++results;
            if (isMarked(*pane->result)) letters.push_back(pane->letter);
        }
        if (letters.empty()) return;
        const bool ofAll = letters.size() == results;
        marks +=
            fmt::format("{}{}{} · ", fmt::join(ofAll ? std::vector<char>{} : letters, ", "), ofAll ? "" : " ", words);
    };
    mark("fast arithmetic", [](const RunResult& result) { return result.arithmetic.starts_with("fast"); });
    mark("simulated on full-attention tensors", [](const RunResult& result) { return result.simulated; });
    mark("tau by proxy", [](const RunResult& result) { return result.calibrated && result.calibrated->proxy; });
    std::string text = marks + place + (place.empty() ? "cut: " : " · cut: ") + input.cut.label;
    for (const PaneData* pane : panes) {
        if (!pane->result) continue;
        const RunResult& result = *pane->result;
        const std::string who = panes.size() > 1 ? std::string(1, pane->letter) + " " : "";
        if (result.request.cut.token != input.cut.token)
            text += fmt::format(" · {}with its own cut: {}", who, result.request.cut.label);
        if (result.request.recorded)
            text += fmt::format(" · {}recorded with a budget of {}", who, budgetWords(result.request.budget));
        if (result.selection.perQueryHead()) text += fmt::format(" · {}kept: union of the group's query heads", who);
        if (result.calibrated)
            text += fmt::format(" · {}{} kept for tau = {}", who, formatPercent(result.calibrated->retention),
                                result.calibrated->asked.value);
    }
    return text;
}

} // namespace kvscope
