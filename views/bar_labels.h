#pragma once

#include <string>

namespace kvscope {

/// How the numbers beside one colour bar are written: all with the same decimals ("0.001", "0.400", "0.954"), or where the
/// largest is below 0.01 or from a million on all in the same power of ten ("0.40e−3"). Mixed notations cannot be compared at
/// a glance. Every label, with a sign of what lies beyond, has the eight letters that a column has room for.
class BarLabels {
public:
    /// The ends of the bar and the distance of its ticks; all values.
    BarLabels(double low, double high, double step);
    /// With as many decimals as this value needs, as far as there is room: somebody chose it.
    void showWhole(double value);

    std::string text(double value) const;

private:
    int m_exponent = 0; ///< of the common power of ten
    bool m_isPower = false;
    int m_decimals = 0, m_mostDecimals = 0;
};

/// Beside a bar of decades: "1e−3", "3.12e−5", "1".
std::string decadeLabel(double value);

} // namespace kvscope
