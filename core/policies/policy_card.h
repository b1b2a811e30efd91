#pragma once

#include "core/parameters/parameters.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace kvscope {

struct PolicyVariant {
    std::string id = {}, label = {}, summary = {};
    std::vector<std::pair<std::string, std::string>> values = {}; ///< parameter id, text; the others have defaults
};

/// Data that the capture must hold for the policy to run.
enum class Need { Keys, Values, Queries, PreRopeKeys, ImportedScores };

/// By what a policy decides. Views of its steps and theorems about it ask for the family: a further policy that writes
/// the same step log joins by its card.
enum class PolicyFamily { None, KeyDiff, Compactor, Leverage, Clusters, Centres, BalanceRounds, BalanceTree };

struct PolicyCard {
    std::string id = {}, name = {}, summary = {};
    std::string paper = {}; ///< with equation or algorithm numbers
    std::vector<Need> needs = {};
    std::vector<PolicyVariant> variants = {};              ///< the first is the default
    std::shared_ptr<const ParameterTable> parameters = {}; ///< own parameters followed by the common ones
    PolicyFamily family = PolicyFamily::None;
    bool usesBudget = true;
    bool usesSeed = false;
    bool carriesState = false;       ///< `carry` returns state, so block processing needs the features of every block
    std::string colonParameter = {}; ///< what stands after the colon is the text of this parameter, not a variant
    std::string blockRefusal = {};   ///< why the policy refuses block processing, as a clause; empty: it does not
    std::string explanation = {};    ///< Markdown, the policy's .md; the base class fills it in
    std::string scoreLabel = {};     ///< as on axes, at the defaults: "score −cos(μ, k)"
};

} // namespace kvscope
