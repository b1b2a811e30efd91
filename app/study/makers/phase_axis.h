#pragma once

#include "core/policies/policy_card.h"
#include "core/policies/policy_spec.h"
#include "views/phase_map/phase_map_data.h"

namespace kvscope {

/// The axis of a phase map or of curves that somebody typed: "id", "id=v1,v2" or "budget". Values that are not given
/// are spread about the default by at most `points` of them; parameters that end at the number of tokens end at
/// `tokens`. Throws Error for what the policy does not know.
PhaseAxis phaseAxisOf(const std::string& typed, const PolicySpec& policy, std::size_t points, std::int64_t tokens);

/// What stands for an axis that was left empty: the budget for a policy that takes one, else, or upwards, its first
/// number, choice or flag that is not `taken`.
std::string standardAxis(const PolicyCard& card, const std::string& taken);

} // namespace kvscope
