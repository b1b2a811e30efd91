#pragma once

#include "core/policies/score/score_feature.h"

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kvscope {

/// A score as a formula:
///   sum = product {(+|-) product}, product = sign {(*|/) sign}, sign = [-] sign | atom,
///   atom = NUMBER | FEATURE | FUNCTION(sum, ...) | (sum), FEATURE = NAME[:VARIANT][.PART][\[parameter=value,...\]].
/// Functions: z, rank, log, exp, sqrt, abs of one argument, min and max of two or more, clip(x, low, high).
class ScoreExpression {
public:
    /// Throws Error that names the character and, for an unknown name, the nearest one.
    static ScoreExpression parse(std::string_view text);

    /// The features in the order of their first appearance, each once.
    const std::vector<ScoreFeature>& features() const { return m_features; }

    /// [heads * rows] head by head, in double: `values[i]` are the numbers of features()[i]. z is (x - mean) / standard
    /// deviation over the rows of a head, 0 where x is constant; rank is the average rank, scaled from 0 (smallest) to
    /// 1. Throws Error that names the part of the formula that is not finite and the row, as `rowText` words it.
    std::vector<double> evaluate(std::span<const std::vector<double>> values, std::size_t heads, std::size_t rows,
                                 const std::function<std::string(std::size_t head, std::size_t row)>& rowText) const;

private:
    ScoreExpression() = default;

    std::string m_text;
    std::vector<ScoreFeature> m_features;
    ScoreNode m_root;
};

} // namespace kvscope
