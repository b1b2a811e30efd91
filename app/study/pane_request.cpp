// From a pane to its run request and to its name in views.
#include "app/study/pane_request.h"

#include "core/base/error.h"
#include "core/capture/named_dataset.h"
#include "core/policies/policy.h"

#include <fmt/format.h>

#include <algorithm>

namespace kvscope {

namespace {

std::string joined(const std::string& first, const std::string& second) {
    return first + (first.empty() || second.empty() ? "" : ", ") + second;
}

/// The policy's name in a list is free text if another program wrote the list.
PolicyIdentity identityOfList(const RecordedSelection& list, const Cut& cut) {
    const auto& known = allPolicies();
    const auto policy = std::find_if(known.begin(), known.end(),
                                     [&](const Policy* candidate) { return candidate->card().id == list.policy; });
    const std::string name = policy != known.end() ? (*policy)->card().name : list.policy;
    const std::string ownCut = cut.evaluatedOnSeen ? "cut none" : fmt::format("cut {}", cut.token);
    return {list.policy, name.empty() ? "Recorded list" : name + " (recorded)", joined(list.variant, ownCut)};
}

/// As stated in the file, else in tokens: a quality names a curve that the list may lack.
Budget budgetOf(const RecordedSelection& list) {
    try {
        Budget budget = Budget::parse(list.budgetRequested);
        if (budget.unit != Budget::Unit::Quality) return budget;
    } catch (const Error&) { // free text of another program
    }
    return {Budget::Unit::Tokens, list.budgetTokens > 0 ? static_cast<double>(list.budgetTokens) : list.budgetKept};
}

} // namespace

RunRequest resolvePane(const PaneRequest& pane) {
    RunRequest request = pane.run;
    if (pane.recordedPath.empty()) return request;
    auto recorded = std::make_shared<RecordedSelection>(readSelection(pane.recordedPath));
    checkAgainst(*recorded, *request.capture);
    request.cut = cutOf(*recorded, *request.capture);
    request.budget = budgetOf(*recorded);
    request.seed = recorded->seed;
    request.recorded = std::move(recorded);
    return request;
}

PolicyIdentity policyIdentityOf(const PolicySpec& policy) {
    const PolicyCard& card = policyById(policy.policy).card();
    const std::string variant =
        policy.variant.empty() && !card.variants.empty() ? card.variants.front().id : policy.variant;
    const bool edited = policy.values != specOfVariant(policy.policy, policy.variant).values;
    return {card.id, card.name, joined(variant, edited ? "edited" : "")};
}

PolicyIdentity policyIdentityOf(const RunRequest& run) {
    return run.recorded ? identityOfList(*run.recorded, run.cut) : policyIdentityOf(run.policy);
}

std::string resultKey(const PaneRequest& pane) {
    if (!pane.recordedPath.empty()) return pane.recordedPath + "@" + pathStamp(pane.recordedPath);
    const RunRequest& run = pane.run;
    return fmt::format("{}|{}|{}{}|{}", run.policy.text(), run.budget.text(), run.cut.token,
                       run.cut.evaluatedOnSeen ? "s" : "", run.seed);
}

} // namespace kvscope
