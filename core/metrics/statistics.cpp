// Statistics for the measures: summaries, rank correlation, log determinants, and lowering a kept set's sum of cosines
// by exchanging tokens.
#include "core/metrics/statistics.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

namespace kvscope {

namespace {

double dot(const double* a, const double* b, std::int64_t d) { return std::inner_product(a, a + d, b, 0.0); }

/// A kept set with its sum of unit keys.
class ExchangedSet {
public:
    ExchangedSet(const UnitRows& rows, const std::vector<TokenIndex>& kept)
        : m_rows(rows), m_isKept(static_cast<std::size_t>(rows.n)), m_sum(static_cast<std::size_t>(rows.d)) {
        for (const TokenIndex token : kept) {
            m_isKept[token] = true;
            move(token, 1);
        }
    }

    double sum() const { return dot(m_sum.data(), m_sum.data(), m_rows.d); }

    /// Makes the best exchange; true when it lowered the sum of cosines.
    bool improve() {
        const double before = sum();
        const TokenIndex out = extreme(true);
        move(out, -1);
        const TokenIndex in = extreme(false);
        move(in, 1);
        if (sum() < before - 1e-9 * (1 + before)) {
            m_isKept[out] = false;
            m_isKept[in] = true;
            return true;
        }
        move(in, -1);
        move(out, 1);
        return false;
    }

private:
    /// The kept row with the largest product with the sum, or the evicted row with the smallest; ties: the earliest.
    TokenIndex extreme(bool kept) const {
        double best = -std::numeric_limits<double>::infinity();
        std::int64_t at = 0;
        for (std::int64_t i = 0; i < m_rows.n; ++i) {
            if (m_isKept[i] != kept) continue;
            const double along = dot(m_rows.values.data() + i * m_rows.d, m_sum.data(), m_rows.d);
            if ((kept ? along : -along) > best) {
                best = kept ? along : -along;
                at = i;
            }
        }
        return static_cast<TokenIndex>(at);
    }

    void move(TokenIndex token, double sign) {
        const double* row = m_rows.values.data() + token * m_rows.d;
        for (std::size_t c = 0; c < m_sum.size(); ++c) m_sum[c] += sign * row[c];
    }

    const UnitRows& m_rows;
    std::vector<bool> m_isKept;
    std::vector<double> m_sum;
};

} // namespace

double Summary::halfInterval() const {
    if (count < 2) return NAN;
    return studentQuantile95(count - 1) * deviation / std::sqrt(static_cast<double>(count));
}

Summary summaryOf(std::span<const double> numbers) {
    Summary summary;
    for (const double number : numbers) {
        if (std::isnan(number)) continue;
        ++summary.count;
        summary.mean += number;
    }
    summary.mean = summary.count == 0 ? NAN : summary.mean / static_cast<double>(summary.count);
    double squares = 0;
    for (const double number : numbers)
        squares += std::isnan(number) ? 0 : (number - summary.mean) * (number - summary.mean);
    summary.deviation = summary.count > 1 ? std::sqrt(squares / static_cast<double>(summary.count - 1)) : NAN;
    return summary;
}

Summary merged(const Summary& a, const Summary& b) {
    if (a.count == 0 || b.count == 0) return a.count == 0 ? b : a;
    const auto n = static_cast<double>(a.count), m = static_cast<double>(b.count), apart = b.mean - a.mean;
    const auto within = [](const Summary& s) {
        return s.count < 2 ? 0 : static_cast<double>(s.count - 1) * s.deviation * s.deviation;
    };
    const double squares = within(a) + within(b) + apart * apart * n * m / (n + m);
    return {a.count + b.count, a.mean + apart * m / (n + m), std::sqrt(squares / (n + m - 1))};
}

// The first quantiles from a table; beyond them the Cornish-Fisher series around the normal quantile, exact to 2e-4.
double studentQuantile95(std::int64_t degrees) {
    constexpr std::array kFirst = {12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281};
    assert(degrees >= 1);
    if (degrees <= std::ssize(kFirst)) return kFirst[degrees - 1];
    const double z = 1.959964, z2 = z * z, n = static_cast<double>(degrees);
    return z + z * (z2 + 1) / (4 * n) + z * ((5 * z2 + 16) * z2 + 3) / (96 * n * n) +
           z * (((3 * z2 + 19) * z2 + 17) * z2 - 15) / (384 * n * n * n);
}

PowerLaw fitPowerLaw(std::span<const double> x, std::span<const double> y) {
    assert(x.size() == y.size());
    std::vector<double> u, v;
    for (std::size_t i = 0; i < x.size(); ++i)
        if (x[i] > 0 && y[i] > 0 && std::isfinite(x[i]) && std::isfinite(y[i])) {
            u.push_back(std::log(x[i]));
            v.push_back(std::log(y[i]));
        }
    PowerLaw law{NAN, NAN, NAN, std::ssize(u)};
    const double meanU = summaryOf(u).mean, meanV = summaryOf(v).mean;
    double spread = 0, along = 0, residual = 0;
    for (std::size_t i = 0; i < u.size(); ++i) {
        spread += (u[i] - meanU) * (u[i] - meanU);
        along += (u[i] - meanU) * (v[i] - meanV);
    }
    if (!(spread > 0)) return law;
    law.exponent = along / spread;
    law.factor = std::exp(meanV - law.exponent * meanU);
    for (std::size_t i = 0; i < u.size(); ++i) residual += std::pow(v[i] - meanV - law.exponent * (u[i] - meanU), 2);
    if (const std::int64_t degrees = law.points - 2; degrees > 0)
        law.halfInterval = studentQuantile95(degrees) * std::sqrt(residual / static_cast<double>(degrees) / spread);
    return law;
}

ShareInterval wilsonInterval(std::int64_t successes, std::int64_t trials) {
    constexpr double z = 1.96;
    const auto n = static_cast<double>(trials);
    const double p = static_cast<double>(successes) / n, spread = z * z / n;
    const double centre = (p + spread / 2) / (1 + spread);
    const double half = z / (1 + spread) * std::sqrt(p * (1 - p) / n + spread / (4 * n));
    return {std::clamp(centre - half, 0.0, p), std::clamp(centre + half, p, 1.0)}; // exact at the ends
}

double cosineOf(std::span<const float> a, std::span<const float> b) {
    double product = 0, ofA = 0, ofB = 0;
    for (std::size_t c = 0; c < a.size(); ++c) {
        product += static_cast<double>(a[c]) * b[c];
        ofA += static_cast<double>(a[c]) * a[c];
        ofB += static_cast<double>(b[c]) * b[c];
    }
    return ofA > 0 && ofB > 0 ? product / std::sqrt(ofA * ofB) : 0;
}

double spearman(std::span<const double> x, std::span<const double> y) {
    assert(x.size() == y.size());
    std::vector<double> a, b;
    for (std::size_t i = 0; i < x.size(); ++i)
        if (!std::isnan(x[i]) && !std::isnan(y[i])) {
            a.push_back(x[i]);
            b.push_back(y[i]);
        }
    return correlationOfRanks(averageRanks(a), averageRanks(b));
}

double correlationOfRanks(std::span<const double> x, std::span<const double> y) {
    assert(x.size() == y.size());
    if (x.size() < 2) return NAN;
    const double mean = 0.5 * static_cast<double>(x.size() + 1);
    double both = 0, ofX = 0, ofY = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
        both += (x[i] - mean) * (y[i] - mean);
        ofX += (x[i] - mean) * (x[i] - mean);
        ofY += (y[i] - mean) * (y[i] - mean);
    }
    return ofX > 0 && ofY > 0 ? both / std::sqrt(ofX * ofY) : NAN;
}

LogDeterminant pseudoLogDeterminant(std::span<const float> singularValues, std::int64_t rows) {
    LogDeterminant result;
    if (singularValues.empty()) return result;
    const auto d = static_cast<std::int64_t>(singularValues.size());
    const double least = singularValues.front() * static_cast<double>(std::max(rows, d)) * 0x1.0p-23;
    for (std::int64_t j = 0; j < std::min(rows, d); ++j) {
        const double s = singularValues[j];
        if (s <= least) break;
        result.value += 2 * std::log(s);
        ++result.count;
    }
    return result;
}

double ridgeLogDeterminant(std::span<const float> singularValues, double ridge) {
    double sum = 0;
    for (const double s : singularValues) sum += std::log(s * s + ridge);
    return sum;
}

UnitRows unitRows(const float* rows, std::int64_t n, std::int64_t d) {
    UnitRows unit{n, d, std::vector<double>(rows, rows + n * d)};
    for (std::int64_t i = 0; i < n; ++i) {
        double* row = unit.values.data() + i * d;
        const double length = std::sqrt(dot(row, row, d));
        for (std::int64_t c = 0; c < d && length > 0; ++c) row[c] /= length;
    }
    return unit;
}

double cosineSumOf(const UnitRows& rows, std::span<const TokenIndex> kept) {
    return ExchangedSet(rows, {kept.begin(), kept.end()}).sum();
}

double exchangedCosineSum(const UnitRows& rows, std::vector<TokenIndex> kept) {
    ExchangedSet set(rows, kept);
    const bool choice = !kept.empty() && std::cmp_less(kept.size(), rows.n);
    while (choice && set.improve()) {
    }
    return set.sum();
}

} // namespace kvscope
