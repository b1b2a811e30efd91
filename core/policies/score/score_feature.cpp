// The names that a formula may use: basic features of every row, and the scores of other policies.
#include "core/policies/score/score_feature.h"

#include "core/base/error.h"
#include "core/policies/common_parameters.h"
#include "core/policies/policy.h"

#include <algorithm>

namespace kvscope {

const std::vector<std::string>& basicScoreFeatures() {
    static const std::vector<std::string> names = {"knorm", "vnorm", "position"};
    return names;
}

bool isBasicScoreFeature(const std::string& name) {
    const auto& names = basicScoreFeatures();
    return std::ranges::find(names, name) != names.end();
}

std::vector<std::string> scoringPolicies() {
    std::vector<std::string> ids;
    for (const Policy* policy : allPolicies()) {
        const PolicyCard& card = policy->card();
        if (card.id != "score" && card.id != "imported" && !card.scoreLabel.starts_with("no score"))
            ids.push_back(card.id);
    }
    return ids;
}

PolicySpec scoreFeatureSpec(const ScoreFeature& feature) {
    std::string text = feature.name;
    if (!feature.variant.empty()) text += ":" + feature.variant;
    return PolicySpec::parse(feature.settings.empty() ? text : text + "," + feature.settings);
}

// A formula uses the scores alone, so settings that act after them are refused; `lambda_rule` is checked by the parser.
void requireScoreSettings(const ScoreFeature& feature) {
    const std::string settings = "," + feature.settings;
    const auto common = withCommonParameters({}, CommonParameters::All, {});
    const auto isCommon = [&](const std::string& id) {
        return std::ranges::find(*common, id, &ParameterSpec::id) != common->end();
    };
    for (const ParameterSpec& row : *policyById(feature.name).card().parameters) {
        if ((row.stage != Stage::Select || row.id == "lambda_rule") && !isBlockParameter(row.id)) continue;
        const std::size_t at = settings.find("," + row.id + "=");
        if (at == std::string::npos) continue;
        const std::string setting = settings.substr(at + 1, settings.find(',', at + 1) - at - 1);
        throw Error({setting + " has no effect inside a formula, which takes only the scores of " + feature.name, "",
                     isCommon(row.id) ? "Write it behind the formula: " + setting : "Leave it out"});
    }
}

} // namespace kvscope
