#pragma once

#include "core/parameters/parameters.h"
#include "views/view.h"

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace kvscope {

/// The values between which a colour map runs, where somebody has chosen them; an end without a value takes care of
/// itself.
struct ValueRange {
    std::optional<double> low, high;
    std::string quantity; ///< what the values measure ("weight"): a range of something else does not apply; empty: any

    bool isChosen() const { return low || high; }
    bool applies(std::string_view to) const { return isChosen() && (quantity.empty() || quantity == to); }

    /// "auto", "0.001..0.2", "..0.2", "weight:0.001..0.2". Throws Error for anything else and where low is not below
    /// high.
    static ValueRange parse(std::string_view text);
    std::string text() const; ///< reads back identically
};

/// The view option that holds one, "auto" by default. `check` throws Error where a text cannot be one, or a quantity is
/// none of the view's.
ParameterSpec valueRangeOption(void (*check)(std::string_view));
inline constexpr const char* kValueRangeOption = "range";

/// For such a check: throws Error where the text is no range, or one of a quantity that is not among the `known` ones
/// of `whose` ("an attention map").
void checkValueRange(std::string_view text, std::span<const std::string_view> known, const char* whose);

/// A value that a pointer chose: three significant digits, so that what is shown is what is stored.
double roundedValue(double value);
/// "3.12e−5", "0.25": the same three digits, to be read.
std::string formatBound(double value);

/// What a view can do beside being drawn, when the range of its colours can be chosen. All of it through the option
/// above.
class ColourRangeView {
public:
    virtual ~ColourRangeView() = default;
    /// As the colours run now; nothing where there is no picture.
    virtual std::optional<ValueRange> colourRange(const ViewInput& input, const ParameterValues& options) const = 0;
    /// Colours from `low` to `high`, in the quantity that is shown now. Nothing where the shown scale has no such
    /// range.
    virtual std::optional<SettingChange> withColourRange(const ViewInput& input, const ParameterValues& options,
                                                         double low, double high) const = 0;
    /// One end moved along the column by so many hundredths of it.
    virtual std::optional<SettingChange> withEndMoved(const ViewInput& input, const ParameterValues& options,
                                                      bool highEnd, int hundredths) const = 0;
    /// All but a share of the shown values at each end have a colour of their own.
    virtual std::optional<SettingChange> withShareLeftOut(const ViewInput& input, const ParameterValues& options,
                                                          double share) const = 0;

    static SettingChange automaticRange();
};

} // namespace kvscope
