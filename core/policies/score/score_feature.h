#pragma once

#include "core/policies/policy_spec.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace kvscope {

/// A name in a formula: a number for every row of every head.
struct ScoreFeature {
    std::string text;          ///< as typed
    std::size_t place = 0;     ///< first character of it in the formula, from 1
    std::string name;          ///< a basic feature or a policy
    std::string variant, part; ///< of a policy; may be empty
    std::string settings;      ///< "window=16,pool_width=7", may be empty
};

/// Basic features: knorm, vnorm, position.
const std::vector<std::string>& basicScoreFeatures();
bool isBasicScoreFeature(const std::string& name);
/// Ids of the policies that score, which a formula may name too.
std::vector<std::string> scoringPolicies();
/// The policy of a feature with its variant and settings. Throws Error.
PolicySpec scoreFeatureSpec(const ScoreFeature& feature);
/// Throws Error if a setting acts only after the score (protection, rounding, blocks, whole layers): a formula takes
/// the score alone, so it would have no effect.
void requireScoreSettings(const ScoreFeature& feature);

/// A node of a formula. Calls carry the name of their function; other nodes differ by kind.
struct ScoreNode {
    enum class Kind { Number, Feature, Add, Subtract, Multiply, Divide, Negate, Call };
    Kind kind = Kind::Number;
    double number = 0;
    std::size_t feature = 0; ///< index into the features
    std::string function;
    std::size_t begin = 0, end = 0; ///< its characters in the formula, from 0
    std::vector<ScoreNode> arguments;
};

/// Parses a formula. Throws Error that names the character.
ScoreNode parseScore(std::string_view text, std::vector<ScoreFeature>& features);

} // namespace kvscope
