#pragma once

#include "core/policies/policy.h"
#include "core/policies/policy_spec.h"

namespace kvscope {

/// Whether the policy reads such a tensor with these values.
bool policyNeeds(const PolicySpec& policy, Need need);
/// How many of the last queries before the cut the policy reads with these values; kAllQueries: every one.
std::int64_t queriesRead(const PolicySpec& policy);
/// Whether the policy reads scores from a file. They are the scores of one capture's tokens, so that such a policy
/// means nothing on a second capture, whatever its shape.
bool readsImportedScores(const PolicySpec& policy);

} // namespace kvscope
