// The one list of policies: a new policy is a new line here, in the order in which policies are offered.
#include "core/base/nearest_name.h"
#include "core/policies/policy.h"

#include <algorithm>
#include <cassert>

#define KVSCOPE_POLICIES(POLICY)                                                                                       \
    POLICY(exactPolicy)                                                                                                \
    POLICY(keydiffPolicy)                                                                                              \
    POLICY(compactorPolicy)                                                                                            \
    POLICY(leveragePolicy)                                                                                             \
    POLICY(snapkvPolicy)                                                                                               \
    POLICY(pyramidkvPolicy)                                                                                            \
    POLICY(h2oPolicy)                                                                                                  \
    POLICY(tovaPolicy)                                                                                                 \
    POLICY(streamingLlmPolicy)                                                                                         \
    POLICY(subgenPolicy)                                                                                               \
    POLICY(subgenKCenterPolicy)                                                                                        \
    POLICY(keyNormPolicy)                                                                                              \
    POLICY(balanceKvPolicy)                                                                                            \
    POLICY(balanceKvStreamPolicy)                                                                                      \
    POLICY(uniformPolicy)                                                                                              \
    POLICY(importedPolicy)                                                                                             \
    POLICY(scorePolicy)

namespace kvscope {

#define KVSCOPE_DECLARE(name) const Policy& name();
KVSCOPE_POLICIES(KVSCOPE_DECLARE)
#undef KVSCOPE_DECLARE

const std::vector<const Policy*>& allPolicies() {
#define KVSCOPE_LIST(name) &name(),
    static const std::vector<const Policy*> policies = {KVSCOPE_POLICIES(KVSCOPE_LIST)};
#undef KVSCOPE_LIST
    return policies;
}

const Policy* findPolicy(std::string_view id) {
    for (const Policy* policy : allPolicies())
        if (policy->card().id == id) return policy;
    return nullptr;
}

const Policy& policyById(std::string_view id) {
    const auto idOf = [](const Policy* policy) -> const std::string& { return policy->card().id; };
    return *requireNamed(allPolicies(), idOf, id, "unknown policy");
}

PolicyFamily familyOf(std::string_view id) {
    const Policy* policy = findPolicy(id);
    return policy ? policy->card().family : PolicyFamily::None;
}

const std::string& firstOf(PolicyFamily family) {
    const auto& policies = allPolicies();
    const auto found =
        std::ranges::find_if(policies, [&](const Policy* policy) { return policy->card().family == family; });
    assert(found != policies.end());
    return (*found)->card().id;
}

} // namespace kvscope
