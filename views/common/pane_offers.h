#pragma once

#include "core/policies/policy_card.h"
#include "views/view.h"

#include <optional>
#include <vector>

namespace kvscope {

/// For a view of the active pane that shows only policies of these families: offers to show a pane that runs one, else
/// to add a pane with one of the first family if the layer has what it reads. Nothing while the active pane runs one or
/// waits for its first result.
std::optional<PaneOffer> offerPolicy(const ViewInput& input, const std::vector<PolicyFamily>& families);
/// Makes a pane the active one.
PaneOffer offerToShow(const ViewInput& input, int pane);

} // namespace kvscope
