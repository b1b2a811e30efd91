// A user's own score: a formula over features of other policies. Each named policy computes and combines its features
// as when it runs alone, and the formula is evaluated on the results.
#include "core/base/error.h"
#include "core/engine/engine.h"
#include "core/parameters/parameter_rows.h"
#include "core/policies/common/policy_tools.h"
#include "core/policies/common_parameters.h"
#include "core/policies/policy.h"
#include "core/policies/policy_needs.h"
#include "core/policies/score/score_expression.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

namespace kvscope {

namespace {

ParameterTable ownParameters() {
    return {textRow("expression", "Score", "z(snapkv) + 0.3*z(key_norm)*vnorm", Stage::Features,
                    "A formula over knorm, vnorm, position and the scores of other policies, with + - * /, z, rank, "
                    "log, exp, sqrt, abs, min, max and clip. Larger is kept.",
                    "your own idea", [](std::string_view text) { (void)ScoreExpression::parse(text); })};
}

PolicyCard makeCard() {
    return {.id = "score",
            .name = "Your own score",
            .summary = "Keeps the tokens with the largest value of a formula over the features of other policies.",
            .paper = "Baseline of your own: a formula on the command line or in the parameter panel",
            .needs = {Need::Keys, Need::Queries, Need::Values},
            .variants = {{"paper", "As written", "larger is kept", {}}},
            .parameters = withCommonParameters(ownParameters(), CommonParameters::All, {"expression"}),
            .usesSeed = true,
            .carriesState = true,
            .colonParameter = "expression",
            .scoreLabel = "score: the formula"};
}

/// Key prefix of a formula's features in the common map: "0/attention", "1/leverage", or "2/" alone for a basic one.
std::string prefixOf(std::size_t feature) { return std::to_string(feature) + "/"; }

Features withPrefix(Features features, const std::string& prefix) {
    Features named;
    for (auto& [name, tensor] : features) named[prefix + name] = std::move(tensor);
    return named;
}

Features withoutPrefix(const Features& features, const std::string& prefix) {
    Features named;
    for (const auto& [name, tensor] : features)
        if (name.starts_with(prefix)) named[name.substr(prefix.size())] = tensor;
    return named;
}

/// The input of one policy of the formula, with the carried state of that policy alone.
PolicyInput inputFor(const PolicyInput& input, std::size_t feature) {
    PolicyInput own = input;
    own.carried = withoutPrefix(input.carried, prefixOf(feature));
    own.memo = nullptr;
    return own;
}

HostTensor basicFeature(const PolicyInput& input, const std::string& name) {
    if (name == "position") return rowTokens(input);
    return input.engine.rowNorms(name == "knorm" ? input.keys : input.values, input.checkpoint);
}

/// The total score of a policy, or the part of it that the formula names.
HostTensor chosenTerm(const ScoreFeature& feature, const Scores& scores) {
    if (feature.part.empty()) return scores.total;
    const auto part = scores.parts.find(feature.part);
    if (part != scores.parts.end()) return part->second;
    std::vector<std::string> known;
    for (const auto& [name, tensor] : scores.parts) known.push_back(name);
    throw Error(
        {fmt::format("{} has no part '{}'", feature.name, feature.part), fmt::format("character {}", feature.place),
         known.empty() ? "It has none: write " + feature.name : fmt::format("It has {}", fmt::join(known, ", "))});
}

class Score : public Policy {
public:
    Score() : Policy(makeCard()) {}

    std::vector<Need> needs(const ParameterValues& values) const override {
        std::vector<Need> all;
        const ScoreExpression formula = formulaOf(values); // outlives the loop over its features
        for (const ScoreFeature& feature : formula.features()) {
            if (feature.name == "knorm") all.push_back(Need::Keys);
            if (feature.name == "vnorm") all.push_back(Need::Values);
            if (isBasicScoreFeature(feature.name)) continue;
            const PolicySpec spec = scoreFeatureSpec(feature);
            const std::vector<Need> own = policyById(spec.policy).needs(spec.values);
            all.insert(all.end(), own.begin(), own.end());
        }
        return all;
    }

    std::int64_t queriesRead(const ParameterValues& values) const override {
        std::int64_t most = 0;
        const ScoreExpression formula = formulaOf(values);
        for (const ScoreFeature& feature : formula.features())
            if (!isBasicScoreFeature(feature.name))
                most = std::max(most, kvscope::queriesRead(scoreFeatureSpec(feature)));
        return most;
    }

    Features features(const PolicyInput& input, const ParameterValues& values) const override {
        Features all;
        const ScoreExpression formula = formulaOf(values);
        for (std::size_t i = 0; i < formula.features().size(); ++i) {
            const ScoreFeature& feature = formula.features()[i];
            if (isBasicScoreFeature(feature.name)) {
                all[prefixOf(i)] = basicFeature(input, feature.name);
                continue;
            }
            const PolicySpec spec = scoreFeatureSpec(feature);
            all.merge(withPrefix(policyById(spec.policy).features(inputFor(input, i), spec.values), prefixOf(i)));
        }
        return all;
    }

    Scores combine(const PolicyInput& input, const Features& features, const ParameterValues& values) const override {
        const ScoreExpression formula = formulaOf(values);
        Scores scores;
        std::vector<std::vector<double>> terms;
        for (std::size_t i = 0; i < formula.features().size(); ++i) {
            const ScoreFeature& feature = formula.features()[i];
            HostTensor term = termOf(input, features, feature, i);
            terms.emplace_back(term.data.begin(), term.data.end());
            scores.parts[feature.text] = std::move(term);
        }
        const auto heads = static_cast<std::size_t>(input.keys.size(0)),
                   rows = static_cast<std::size_t>(input.rowCount());
        const auto rowText = [&](std::size_t head, std::size_t row) {
            return fmt::format("KV head {}, token {}", head,
                               input.tokenAt(static_cast<std::int64_t>(head), static_cast<std::int64_t>(row)));
        };
        const std::vector<double> total = formula.evaluate(terms, heads, rows, rowText);
        HostTensor rounded{{input.keys.size(0), input.rowCount()}, {}};
        std::ranges::transform(total, std::back_inserter(rounded.data), [](double x) { return static_cast<float>(x); });
        scores.total = std::move(rounded);
        return scores;
    }

    Features carry(const PolicyInput& input, const Features& features, const ParameterValues& values) const override {
        Features all;
        const ScoreExpression formula = formulaOf(values);
        for (std::size_t i = 0; i < formula.features().size(); ++i) {
            if (isBasicScoreFeature(formula.features()[i].name)) continue;
            const PolicySpec spec = scoreFeatureSpec(formula.features()[i]);
            const Features own = withoutPrefix(features, prefixOf(i));
            all.merge(withPrefix(policyById(spec.policy).carry(inputFor(input, i), own, spec.values), prefixOf(i)));
        }
        return all;
    }

    std::vector<std::string> notes(const PolicyInput& input, const ParameterValues& values) const override {
        std::vector<std::string> all;
        const ScoreExpression formula = formulaOf(values);
        for (std::size_t i = 0; i < formula.features().size(); ++i) {
            if (isBasicScoreFeature(formula.features()[i].name)) continue;
            const PolicySpec spec = scoreFeatureSpec(formula.features()[i]);
            const std::vector<std::string> own = policyById(spec.policy).notes(inputFor(input, i), spec.values);
            all.insert(all.end(), own.begin(), own.end());
        }
        return all;
    }

    std::string scoreLabel(const ParameterValues& values) const override {
        return "score " + values.text("expression");
    }

private:
    static ScoreExpression formulaOf(const ParameterValues& values) {
        return ScoreExpression::parse(values.text("expression"));
    }

    static HostTensor termOf(const PolicyInput& input, const Features& features, const ScoreFeature& feature,
                             std::size_t i) {
        if (isBasicScoreFeature(feature.name)) return features.at(prefixOf(i));
        const PolicySpec spec = scoreFeatureSpec(feature);
        const Features own = withoutPrefix(features, prefixOf(i));
        return chosenTerm(feature, policyById(spec.policy).combine(inputFor(input, i), own, spec.values));
    }
};

} // namespace

const Policy& scorePolicy() { return onlyPolicy<Score>(); }

} // namespace kvscope
