// What a policy with its values reads besides the keys.
#include "core/policies/policy_needs.h"

#include <algorithm>

namespace kvscope {

bool policyNeeds(const PolicySpec& policy, Need need) {
    const std::vector<Need> needs = policyById(policy.policy).needs(policy.values);
    return std::ranges::find(needs, need) != needs.end();
}

bool readsImportedScores(const PolicySpec& policy) { return policyNeeds(policy, Need::ImportedScores); }

} // namespace kvscope
