// The margin of a row of the theory table, and the grid of epsilons.
#include "core/studies/theory_table.h"

#include <cmath>

namespace kvscope {

bool TheoryRow::hasMargin() const {
    return kind == Kind::AtLeast ? !std::isnan(set)
                                 : kind == Kind::Bound && !std::isnan(measured) && !std::isnan(demanded);
}

double TheoryRow::marginAgainst(double otherDemand) const {
    if (!hasMargin()) return std::numeric_limits<double>::quiet_NaN();
    if (kind == Kind::AtLeast) return set / otherDemand;
    // A bound on a signed number (a cosine) has no ratio: the margin is 1 plus the difference.
    return measured > 0 && otherDemand > 0 ? otherDemand / measured : 1 + otherDemand - measured;
}

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
