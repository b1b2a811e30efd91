#pragma once

#include "core/base/average_ranks.h"
#include "core/base/host_tensor.h"
#include "core/base/index.h"

#include <cstdint>
#include <span>
#include <vector>

namespace kvscope {

/// Mean and spread; NaN are left out.
struct Summary {
    std::int64_t count = 0;
    double mean = 0;
    double deviation = 0; ///< sample standard deviation, divisor count - 1; NaN below two numbers
    /// Half the 95 % confidence interval of the mean by Student's t: 1.96 deviation / sqrt(count) for many numbers
    /// (BalanceKV Table 3), while the factor for three (captures, seeds, heads) is 4.30. NaN below two numbers, which
    /// have no interval.
    double halfInterval() const;
};
Summary summaryOf(std::span<const double> numbers);
/// The summary of the numbers of both.
Summary merged(const Summary& a, const Summary& b);

struct ShareInterval {
    double low = 0, high = 1;
};
/// Wilson's 95 % score interval of a probability that was seen `successes` times in `trials` > 0 draws.
ShareInterval wilsonInterval(std::int64_t successes, std::int64_t trials);

/// y = factor x^exponent, fitted to the logarithms by least squares.
struct PowerLaw {
    double exponent = 0, factor = 0;
    /// Half the 95 % interval of the exponent by Student's t with points - 2 degrees of freedom; NaN with two points.
    double halfInterval = 0;
    std::int64_t points = 0; ///< pairs used
};
/// Pairs that are not both positive and finite are skipped; NaN with fewer than two different x.
PowerLaw fitPowerLaw(std::span<const double> x, std::span<const double> y);
/// The value that |t| of Student's t with so many degrees of freedom exceeds with probability 5 %.
double studentQuantile95(std::int64_t degrees);

/// Spearman's rank correlation of pairs in which neither is NaN; NaN with fewer than two or without variation.
double spearman(std::span<const double> x, std::span<const double> y);
/// The same for ranks from 1 (core/base/average_ranks.h); NaN for fewer than two.
double correlationOfRanks(std::span<const double> x, std::span<const double> y);

/// Cosine of the angle between two vectors of one length, summed in double; 0 where one of them is zero.
double cosineOf(std::span<const float> a, std::span<const float> b);

struct LogDeterminant {
    double value = 0;
    std::int64_t count = 0; ///< singular values used
};
/// Sum of ln s^2 over the values above s_1 max(rows, d) 2^-23 (descending values [d]); 0 without rows.
LogDeterminant pseudoLogDeterminant(std::span<const float> singularValues, std::int64_t rows);
/// ln det(K^T K + ridge I), ridge > 0.
double ridgeLogDeterminant(std::span<const float> singularValues, double ridge);

/// Unit rows [n, d] of one head in double; zero rows stay zero.
struct UnitRows {
    std::int64_t n = 0, d = 0;
    std::vector<double> values;
};
UnitRows unitRows(const float* rows, std::int64_t n, std::int64_t d);
/// Sum over i, j in the set of cos(k_i, k_j) = || sum of unit keys ||^2, self terms included (KeyDiff C.2).
double cosineSumOf(const UnitRows& rows, std::span<const TokenIndex> kept);
/// Exchanges the kept row with the largest product with the sum for the evicted row with the smallest, as long as the
/// sum of cosines falls: a low sum for a set of this size, not necessarily the lowest. O(n d) per exchange. `kept`
/// ascending; returns the sum.
double exchangedCosineSum(const UnitRows& rows, std::vector<TokenIndex> kept);

} // namespace kvscope
