#pragma once

#include "core/policies/score/score_feature.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace kvscope {

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
