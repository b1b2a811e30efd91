// kvpress takes the fraction removed, this program the fraction kept. The floor of kvpress depends on the last bit of
// the ratio, so the ratio must be the decimal that a user types and not a binary difference.
#include "core/policies/fraction_removed.h"

#include "core/base/number_text.h"

#include <fmt/format.h>

namespace kvscope {

double fractionRemoved(double retention) { return *parseNumber<double>(fmt::format("{:.15g}", 1 - retention)); }

double tokensLeft(double n, double retention) { return n * (1 - fractionRemoved(retention)); }

} // namespace kvscope
