// Scores that another program wrote say of which tokens they are only if kvscope-scores wrote them.
#include "core/policies/imported_scores.h"

#include "core/policies/policy.h"

#include <algorithm>

namespace kvscope {

bool readsImportedScores(const PolicySpec& policy) {
    const std::vector<Need> needs = policyById(policy.policy).needs(policy.values);
    return std::ranges::find(needs, Need::ImportedScores) != needs.end();
}

} // namespace kvscope
