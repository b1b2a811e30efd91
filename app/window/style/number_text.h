#pragma once

#include <QString>

#include <cstdint>
#include <span>

namespace kvscope {

// Number formats of the window: comma groups, typographic minus, fixed decimals.
QString countText(std::int64_t count);   ///< "1,024"
QString percentText(double fraction);    ///< "25.0 %"
QString errorText(double relativeError); ///< "0.116", "3.1e−6" below 0.001, "n/a" for NaN
QString scoreText(double score);         ///< four significant digits
QString bytesText(double bytes);         ///< "128.0 MiB"
QString durationText(double seconds);    ///< whole: "12 s", "7 min 12 s", "2 h 5 min"
QString milliText(double milliseconds);  ///< "0.4 ms", from 10 s on as durationText

/// Format of one column: equal decimals, so that numbers align on the right; enough to show the largest with four
/// digits and, where one is far larger than the others, the median with three. A number that would read 0 has an
/// exponent.
class NumberColumn {
public:
    explicit NumberColumn(std::span<const double> values);
    QString text(double value) const;

private:
    bool m_exponents = false; ///< the largest value is too small or too large for fixed decimals
    int m_decimals = 0;
};

QString fromUtf8(const std::string& text);

/// "1,024" without the commas between its thousands; a text without commas as it is. Throws Error for a comma
/// elsewhere: without it "0,25" would be another number.
QString withoutThousands(const QString& typed);

} // namespace kvscope
