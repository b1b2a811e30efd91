#pragma once

#include "views/common/view_facts.h"
#include "views/leverage/leverage_data.h"

#include <memory>
#include <string>
#include <vector>

namespace kvscope {

/// The data with the tokens that the best `budget` scores would keep, by each of the two.
struct LeverageChoice {
    std::shared_ptr<const LeverageData> data;
    std::int64_t budget = 0;           ///< tokens that the active pane keeps in this head; 0: no pane has a result
    std::vector<char> exact, sketched; ///< [cut] 1: among the best `budget`
    std::int64_t common = 0;           ///< tokens in both
    std::int64_t withoutLeverage = 0;  ///< tokens with leverage 0, which logarithmic axes cannot show

    double overlap() const { return budget > 0 ? static_cast<double>(common) / static_cast<double>(budget) : 0; }
    /// Share of the sum of the exact leverage on its best `count` tokens.
    double shareOfBest(std::int64_t count) const;
};
LeverageChoice leverageChoice(const ViewInput& input);

/// Theorem 2 at an epsilon and delta = 0.01, for the rank and the singular values of the keys.
struct SketchTheorem {
    double epsilon = 0, factor = 1; ///< sketched / exact within 1 / factor and factor
    double demanded = 0;            ///< columns that the theorem asks for
    double measuredLow = 0, measuredHigh = 0;
};
SketchTheorem sketchTheorem(const LeverageData& data, double epsilon);

} // namespace kvscope
