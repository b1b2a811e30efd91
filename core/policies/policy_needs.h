#pragma once

#include "core/policies/policy.h"
#include "core/policies/policy_spec.h"

namespace kvscope {

/// Whether the policy with its parameter values has this need.
bool policyNeeds(const PolicySpec& policy, Need need);
/// How many of the last queries before the cut the policy with its values reads; kAllQueries: every one.
std::int64_t queriesRead(const PolicySpec& policy);
/// Whether the policy reads scores from a file. They belong to the tokens of one capture, so such a policy cannot be
/// used on another capture, even one of the same shape.
bool readsImportedScores(const PolicySpec& policy);

} // namespace kvscope
