// Formats all numbers of the window, so that equal numbers look equal.
#include "app/window/style/number_text.h"

#include "core/base/error.h"
#include "views/scene/axes.h"

#include <QRegularExpression>

#include <algorithm>
#include <cmath>
#include <vector>

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
    std::vector<double> sizes; // of the numbers that are not 0
    bool areWhole = true;
    for (const double value : values)
        if (std::isfinite(value) && value != 0) {
            sizes.push_back(std::abs(value));
            areWhole = areWhole && value == std::round(value);
        }
    if (sizes.empty()) return;
    const double largest = std::ranges::max(sizes);
    m_exponents = largest < 1e-4 || largest >= 1e9;
    if (areWhole) return;
    const auto middle = sizes.begin() + std::ssize(sizes) / 2;
    std::ranges::nth_element(sizes, middle);
    const auto decimals = [](double size, int digits) {
        return digits - 1 - static_cast<int>(std::floor(std::log10(size)));
    };
    constexpr int kMostOfMiddle = 4; // smaller numbers have an exponent instead
    m_decimals = std::clamp(std::max(decimals(largest, 4), std::min(decimals(*middle, 3), kMostOfMiddle)), 0, 7);
}

QString NumberColumn::text(double value) const {
    if (!std::isfinite(value)) return fromUtf8(formatShort(value));
    if (m_exponents) return withMinus(QString::number(value, 'e', 3));
    const std::string fixed = formatFixed(value, m_decimals);
    return value != 0 && fixed == formatFixed(0, m_decimals) ? errorText(value) : fromUtf8(fixed);
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
