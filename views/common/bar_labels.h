#pragma once

#include <string>

namespace kvscope {

/// How the numbers beside one colour bar are written. The ticks have as many decimals as their step needs ("0.2",
/// "0.4"), or where the largest is below 0.01 or from a million on all the same power of ten ("2e−4", "4e−4"). The two
/// ends are values of the picture and have three significant digits each ("0.954", "6.47e−4"): with the decimals of the
/// ticks a small end would be rounded to something else. Every label, with a sign of what lies beyond, fits the
/// eight letters that a column has room for.
class BarLabels {
public:
    /// The values at the ends of the bar, and the step between its ticks.
    BarLabels(double low, double high, double step);

    std::string tick(double value) const;
    /// `chosen`: the user chose this value, so it has all its digits, as far as there is room.
    std::string end(double value, bool chosen = false) const;

private:
    int m_exponent = 0; ///< of the common power of ten
    bool m_isPower = false, m_counts = false;
    int m_decimals = 0; ///< of ticks
    double m_step = 0;
};

/// Beside a bar of decades: "1e−3", "3.12e−5", "1".
std::string decadeLabel(double value);

} // namespace kvscope
