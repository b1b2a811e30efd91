// Offers of empty views: the policy or setting that would fill them.
#include "views/common/pane_offers.h"

#include "core/policies/policy.h"
#include "core/run/layer_reads.h"
#include "views/common/view_facts.h"

#include <algorithm>

namespace kvscope {

namespace {

bool chooses(const PaneData& pane, const std::vector<PolicyFamily>& families) {
    const bool recorded = pane.result && pane.result->request.recorded;
    return !recorded && std::ranges::find(families, familyOf(pane.policyId)) != families.end();
}

} // namespace

PaneOffer offerToShow(const ViewInput& input, int pane) {
    return {.settingChange = {.pane = pane, .step = "Activate pane"},
            .label = std::string("Show pane ") + input.panes[pane].letter};
}

std::optional<PaneOffer> offerPolicy(const ViewInput& input, const std::vector<PolicyFamily>& families) {
    if (!input.capture) return std::nullopt;
    const PaneData* active = activePane(input);
    const bool waits = active && !active->result && active->error.empty();
    if (waits || (active && chooses(*active, families))) return std::nullopt;
    for (std::size_t i = 0; i < input.panes.size(); ++i)
        if (chooses(input.panes[i], families)) return offerToShow(input, static_cast<int>(i));
    const std::string spec = firstOf(families.front());
    if (!missingInput(PolicySpec::parse(spec), *input.capture, input.capture->info().layerInfo(input.layer)).empty())
        return std::nullopt;
    return PaneOffer{.spec = spec};
}

} // namespace kvscope
