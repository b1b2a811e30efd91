#pragma once

#include <QString>

#include <cstdint>
#include <span>

namespace kvscope {

// Numbers as the whole window sets them: thin-free comma groups, typographic minus, fixed decimals.
QString countText(std::int64_t count);   ///< "1,024"
QString percentText(double fraction);    ///< "25.0 %"
QString errorText(double relativeError); ///< "0.116", "3.1e−6" below 0.001, "n/a" for NaN
QString scoreText(double score);         ///< four significant digits
QString bytesText(double bytes);         ///< "128.0 MiB"
QString milliText(double milliseconds);  ///< "0.4 ms"

/// How the numbers of one column are set: with the same number of decimals, so that they align on the right, and as
/// many as show the largest with four digits.
class NumberColumn {
public:
    explicit NumberColumn(std::span<const double> values);
    QString text(double value) const;

private:
    bool m_exponents = false; ///< all of them are too small or too large for anything else
    int m_decimals = 0;
};

QString fromUtf8(const std::string& text);

} // namespace kvscope
