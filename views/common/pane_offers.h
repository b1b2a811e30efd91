#pragma once

#include "core/policies/policy_card.h"
#include "views/view.h"

#include <optional>
#include <vector>

namespace kvscope {

/// For a view of the active pane that shows policies of these families only (the first has the one to add): another
/// pane that has one, else a further pane. Nothing while the active pane has one or waits for its first result.
std::optional<PaneOffer> offerPolicy(const ViewInput& input, const std::vector<PolicyFamily>& families);
/// Makes a pane the active one.
PaneOffer offerToShow(const ViewInput& input, int pane);

} // namespace kvscope
