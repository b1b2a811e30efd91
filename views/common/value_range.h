#pragma once

#include "core/parameters/parameters.h"
#include "views/view.h"

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace kvscope {

/// The range of a colour map or of an axis as chosen by the user; an end without a value is automatic.
struct ValueRange {
    std::optional<double> low, high;
    std::string quantity; ///< what the values measure ("weight"): a range of something else does not apply; empty: any
    bool each = false;    ///< nothing is chosen, and pictures side by side do not share a range

    bool isChosen() const { return low || high; }
    bool applies(std::string_view to) const { return isChosen() && (quantity.empty() || quantity == to); }

    /// "auto", "each", "0.001..0.2", "..0.2", "weight:0.001..0.2". Throws Error for anything else and where low is not
    /// below high.
    static ValueRange parse(std::string_view text);
    std::string text() const; ///< reads back identically
};

/// The view option that holds a range, "auto" by default. `check` throws Error where a text is no range, or names a
/// quantity that the view does not have.
ParameterSpec valueRangeOption(void (*check)(std::string_view));
inline constexpr const char* kValueRangeOption = "range";

/// For such a check: throws Error if the text is no range, or a range of a quantity that is not among the `known` ones
/// of `whose` ("an attention map").
void checkValueRange(std::string_view text, std::span<const std::string_view> known, const char* whose);

/// A value chosen with the pointer, rounded to the three significant digits that are shown.
double roundedValue(double value);
/// "3.12e−5", "0.25": the three digits as text.
std::string formatBound(double value);

} // namespace kvscope
