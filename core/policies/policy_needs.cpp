// What a policy reads with its parameter values.
#include "core/policies/policy_needs.h"

#include "core/policies/policy_run.h"

#include <algorithm>

namespace kvscope {

bool policyNeeds(const PolicySpec& policy, Need need) {
    const std::vector<Need> needs = policyById(policy.policy).needs(policy.values);
    return std::ranges::find(needs, need) != needs.end();
}

std::int64_t queriesRead(const PolicySpec& policy) {
    if (!policyNeeds(policy, Need::Queries)) return 0;
    return isOneShot(policy.values) ? policyById(policy.policy).queriesRead(policy.values) : kAllQueries;
}

bool readsImportedScores(const PolicySpec& policy) { return policyNeeds(policy, Need::ImportedScores); }

} // namespace kvscope
