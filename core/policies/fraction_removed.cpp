// kvpress is given the fraction removed, this program the fraction kept. Its floor depends on the last bit of the
// ratio, so the ratio must be the decimal that a user types and not a binary difference.
#include "core/policies/fraction_removed.h"

#include <array>
#include <charconv>

namespace kvscope {

double fractionRemoved(double retention) {
    std::array<char, 40> digits{};
    const auto written =
        std::to_chars(digits.data(), digits.data() + digits.size(), 1 - retention, std::chars_format::general, 15);
    double removed = 0;
    std::from_chars(digits.data(), written.ptr, removed);
    return removed;
}

double tokensLeft(double n, double retention) { return n * (1 - fractionRemoved(retention)); }

} // namespace kvscope
