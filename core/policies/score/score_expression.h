#pragma once

#include "core/policies/policy_spec.h"

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kvscope {

/// What a name in a formula means: numbers that every row of every head has.
struct ScoreFeature {
    std::string text;           ///< as typed
    std::size_t place = 0;      ///< first character of it in the formula, from 1
    std::string name;           ///< a basic feature or a policy
    std::string variant, part;  ///< of a policy; may be empty
    std::string settings;       ///< "window=16,pool_width=7", may be empty
};

/// A score as a formula:
///   sum = product {(+|-) product}, product = sign {(*|/) sign}, sign = [-] sign | atom,
///   atom = NUMBER | FEATURE | FUNCTION(sum, ...) | (sum), FEATURE = NAME[:VARIANT][.PART][\[parameter=value,...\]].
/// Functions: z, rank, log, exp, sqrt, abs of one argument, min and max of two or more, clip(x, low, high).
class ScoreExpression {
public:
    /// Throws Error that names the character and, for an unknown name, the nearest one.
    static ScoreExpression parse(std::string_view text);
    ~ScoreExpression();
    ScoreExpression(ScoreExpression&&) noexcept;
    ScoreExpression& operator=(ScoreExpression&&) noexcept;

    /// In the order of their first appearance, each once.
    const std::vector<ScoreFeature>& features() const;

    /// [heads * rows] head by head, in double: `values[i]` are the numbers of features()[i]. z is (x - mean) / standard
    /// deviation over the rows of a head, 0 where that is constant; rank the average rank from 0 for the smallest to 1.
    /// Throws Error naming the part of the formula that is not finite, and where `rowText` says that the row is.
    std::vector<double> evaluate(std::span<const std::vector<double>> values, std::size_t heads, std::size_t rows,
                                 const std::function<std::string(std::size_t head, std::size_t row)>& rowText) const;

private:
    struct Tree;
    explicit ScoreExpression(std::unique_ptr<Tree> tree);
    std::unique_ptr<Tree> m_tree;
};

/// Names that stand for themselves: knorm, vnorm, position.
const std::vector<std::string>& basicScoreFeatures();
bool isBasicScoreFeature(const std::string& name);
/// Policies that score, by id: the others that a formula may name.
std::vector<std::string> scoringPolicies();
/// The policy of a feature with its variant and settings. Throws Error.
PolicySpec scoreFeatureSpec(const ScoreFeature& feature);

} // namespace kvscope
