#pragma once

#include "core/base/checkpoint.h"
#include "core/engine/requests.h"
#include "core/metrics/statistics.h"

#include <cstdint>
#include <vector>

namespace kvscope {

class Engine;

/// Counts of numbers in equal bins of [low, high). A number beyond the upper end doubles the range, pairs of bins
/// becoming one; a number below the lower end counts in the first bin. Numbers that are not finite are left out.
class Histogram {
public:
    Histogram() = default;
    Histogram(double low, double high, std::size_t bins); ///< low < high, at least one bin
    /// Over the given numbers exactly; a margin keeps the largest inside.
    static Histogram over(std::span<const double> numbers, std::size_t bins);

    void add(double number);
    double low() const { return m_low; }
    double high() const { return m_high; }
    double binWidth() const { return (m_high - m_low) / static_cast<double>(m_counts.size()); }
    const std::vector<std::int64_t>& counts() const { return m_counts; }
    Summary summary() const; ///< of the numbers themselves, not of the bins

private:
    double m_low = 0, m_high = 1;
    std::vector<std::int64_t> m_counts;
    std::int64_t m_count = 0;
    double m_mean = 0, m_squares = 0; ///< running mean and sum of squared distances to it (Welford)
};

/// cos(x_i, mean of x) of rows [H, n, d] (KeyDiff Fig. 13); 0 for a zero row.
HostTensor cosinesToMean(const Engine& engine, const Tensor& rows, const Checkpoint& checkpoint);
/// ||x_i - mean of x|| of rows [H, n, d] (BalanceKV Table 3, "shifted").
HostTensor distancesToMean(const Engine& engine, const Tensor& rows, const Checkpoint& checkpoint);

/// A query with the key k* that it attends to most, and what KeyDiff's Lemma 3.1 and Theorem 3.2 say about them.
struct TheoremPoint {
    TokenIndex query = 0, key = 0;
    double weight = 0;         ///< attention weight of k*
    double cosKey = 0;         ///< b = cos(k*, q)
    double cosMean = 0;        ///< a = cos(mean key, q)
    double cosMeanKey = 0;     ///< cos(mean key, k*)
    double squaredNorm = 0;    ///< M: the largest ||k||^2 with the query made a unit vector and the scaling in the keys
    double leastCosKey = 0;    ///< Lemma 3.1's bound on b
    double mostCosMeanKey = 0; ///< Theorem 3.2's bound on cos(mean key, k*)

    bool premiseHolds() const { return cosMean < 0 && cosKey > 0; } ///< of Theorem 3.2
};

struct TheoremInput {
    Tensor queries; ///< [Hq, w, d], query r at position firstQuery + r
    Tensor keys;    ///< [Hkv, n, d]
    TokenIndex firstQuery = 0;
    std::int64_t meanOver = 0; ///< the mean key is that of the first so many tokens
    AttentionRule rule;
    std::int32_t queryHead = 0;
    std::int64_t most = 256; ///< the last so many queries
};
/// Queries whose largest weight is 1 up to float rounding are left out: 1 - w is lost there.
std::vector<TheoremPoint> theoremPoints(const Engine& engine, const TheoremInput& input, const Checkpoint& checkpoint);

} // namespace kvscope
