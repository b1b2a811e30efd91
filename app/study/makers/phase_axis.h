#pragma once

#include "core/policies/policy_card.h"
#include "core/policies/policy_spec.h"
#include "views/phase_map/phase_map_data.h"

namespace kvscope {

/// The axis of a phase map or of curves as typed: "id", "id=v1,v2" or "budget". Without values, at most `points` are
/// spread over the range, or around the default on a logarithmic axis. A range up to the number of tokens ends at
/// `tokens`, on a linear axis at half of them. Throws Error for anything that the policy lacks.
PhaseAxis phaseAxisOf(const std::string& typed, const PolicySpec& policy, std::size_t points, std::int64_t tokens);

/// The default axis: the budget if the policy takes one; otherwise, and for the second axis, its first number, choice
/// or flag that is not `taken`.
std::string standardAxis(const PolicyCard& card, const std::string& taken);

} // namespace kvscope
