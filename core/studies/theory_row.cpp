// The margin of a row of the theory table, and the grid of epsilons.
#include "core/policies/citations.h"
#include "core/studies/theory_table.h"

#include <cmath>

namespace kvscope {

bool TheoryRow::hasMargin() const {
    return kind == Kind::AtLeast ? !std::isnan(set)
                                 : kind == Kind::Bound && !std::isnan(worst) && !std::isnan(demanded);
}

double TheoryRow::marginAgainst(double otherDemand) const {
    if (!hasMargin()) return std::numeric_limits<double>::quiet_NaN();
    if (kind == Kind::AtLeast) return set / otherDemand;
    return isSigned ? 1 + otherDemand - worst : otherDemand / worst;
}

std::string TheoryRow::paper() const { return std::string(citedPaper(theorem.substr(0, theorem.find(' '))).reference); }

const std::vector<double>& theoryEpsilons() {
    static const std::vector<double> values = [] {
        constexpr int kSteps = 24;
        std::vector<double> made;
        for (int i = 0; i <= kSteps; ++i) made.push_back(0.01 * std::pow(99.0, static_cast<double>(i) / kSteps));
        return made;
    }();
    return values;
}

} // namespace kvscope
