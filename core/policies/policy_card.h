#pragma once

#include "core/parameters/parameters.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace kvscope {

struct PolicyVariant {
    std::string id = {}, label = {}, summary = {};
    std::vector<std::pair<std::string, std::string>> values = {}; ///< parameter id, text; others keep their defaults
};

/// Data that the capture must hold for the policy to run.
enum class Need { Keys, Values, Queries, PreRopeKeys, ImportedScores };

/// What a policy decides by. Step views and theorems look for the family, not for an id: another policy that writes the
/// same step log joins the family by its card.
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
    std::string colonParameter = {}; ///< the text after the colon sets this parameter and names no variant
    std::string blockRefusal = {};   ///< why the policy refuses block processing, as a clause; empty: it does not
    std::string explanation = {};    ///< Markdown, the policy's .md; the base class fills it in
    std::string scoreLabel = {};     ///< as on axes, at the defaults: "score −cos(μ, k)"
};

} // namespace kvscope
