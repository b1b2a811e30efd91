// Formats all numbers of the window, so that equal numbers look equal.
#include "app/window/style/number_text.h"

#include "core/base/error.h"
#include "views/scene/axes.h"

#include <QRegularExpression>

#include <algorithm>
#include <cmath>

namespace kvscope {

namespace {

QString withMinus(QString text) { return text.replace('-', QChar(0x2212)); }

} // namespace

QString countText(std::int64_t count) { return fromUtf8(formatCount(count)); }

QString percentText(double fraction) { return fromUtf8(formatPercent(fraction)); }

QString errorText(double relativeError) {
    if (std::isnan(relativeError)) return "n/a";
    if (relativeError != 0 && std::abs(relativeError) < 0.001)
        return withMinus(QString::number(relativeError, 'e', 1).replace("e-0", "e-"));
    return withMinus(QString::number(relativeError, 'f', 3));
}

QString scoreText(double score) {
    if (std::isnan(score)) return "n/a";
    const bool small = score != 0 && std::abs(score) < 1e-3; // 3.858e−4 instead of 0.0003858
    return withMinus(QString::number(score, small ? 'e' : 'g', small ? 3 : 4).replace("e-0", "e-"));
}

NumberColumn::NumberColumn(std::span<const double> values) {
    double largest = 0;
    bool areWhole = true;
    for (const double value : values)
        if (std::isfinite(value)) {
            largest = std::max(largest, std::abs(value));
            areWhole = areWhole && value == std::round(value);
        }
    m_exponents = largest != 0 && (largest < 1e-4 || largest >= 1e9);
    if (!areWhole && largest > 0) m_decimals = std::clamp(3 - static_cast<int>(std::floor(std::log10(largest))), 0, 7);
}

QString NumberColumn::text(double value) const {
    if (!std::isfinite(value)) return fromUtf8(formatShort(value));
    return m_exponents ? withMinus(QString::number(value, 'e', 3)) : fromUtf8(formatFixed(value, m_decimals));
}

QString bytesText(double bytes) { return fromUtf8(formatBytes(bytes)); }

QString durationText(double seconds) {
    const std::int64_t whole = std::llround(seconds), minutes = whole / 60;
    if (minutes == 0) return QString("%1 s").arg(whole);
    return minutes < 60 ? QString("%1 min %2 s").arg(minutes).arg(whole % 60)
                        : QString("%1 h %2 min").arg(minutes / 60).arg(minutes % 60);
}

QString milliText(double milliseconds) {
    if (milliseconds >= 10'000) return durationText(milliseconds / 1000);
    return QString::number(milliseconds, 'f', milliseconds < 100 ? 1 : 0) + " ms";
}

QString fromUtf8(const std::string& text) {
    return QString::fromUtf8(text.data(), static_cast<qsizetype>(text.size()));
}

QString withoutThousands(const QString& typed) {
    static const QRegularExpression kThousands("^[+-]?[1-9]\\d{0,2}(,\\d{3})+(\\.\\d*)?%?$");
    const QString text = typed.trimmed();
    if (text.contains(',') && !kThousands.match(text).hasMatch())
        throw Error({"A comma stands only between thousands", text.toStdString(),
                     "write 0.25 with a point, 1,024 with a comma"});
    return QString(text).remove(',');
}

} // namespace kvscope
