#pragma once

#include "core/base/checkpoint.h"
#include "core/engine/requests.h"
#include "core/metrics/statistics.h"

#include <cstdint>
#include <vector>

namespace kvscope {

class Engine;

/// Counts in equal bins of [low, high). A number beyond the upper end doubles the range and merges pairs of bins; a
/// number below the lower end counts in the first bin. Numbers that are not finite are left out.
class Histogram {
public:
    Histogram() = default;
    Histogram(double low, double high, std::size_t bins); ///< low < high, at least one bin
    /// A histogram of these numbers whose range just includes the largest.
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

/// A query with k*, the key of its largest weight, and the bounds of KeyDiff's Theorems C.1 (Lemma 3.1 at finite n)
/// and 3.2.
struct TheoremPoint {
    TokenIndex query = 0, key = 0;
    double weight = 0;     ///< attention weight of k*
    double cosKey = 0;     ///< b = cos(k*, q)
    double cosMean = 0;    ///< a = cos(mean key, q)
    double cosMeanKey = 0; ///< cos(mean key, k*)
    /// M: largest ||k||^2 of the keys that the query sees, for a unit query: keys times the query's norm and scaling.
    double squaredNorm = 0;
    double leastCosKey = 0;    ///< KeyDiff Theorem C.1's bound on b
    double mostCosMeanKey = 0; ///< KeyDiff Theorem 3.2's bound on cos(mean key, k*)

    bool premiseHolds() const { return cosMean < 0 && cosKey > 0; } ///< of KeyDiff Theorem 3.2
};

struct TheoremInput {
    Tensor queries; ///< [Hq, w, d], query r at position firstQuery + r
    Tensor keys;    ///< [Hkv, n, d]
    TokenIndex firstQuery = 0;
    std::int64_t meanOver = 0; ///< the mean key is the mean over the first meanOver tokens
    AttentionRule rule;
    std::int32_t queryHead = 0;
    std::int64_t most = 256; ///< use the last `most` queries
};
/// Queries whose largest weight is 1 up to float rounding are skipped, because 1 - w is lost.
std::vector<TheoremPoint> theoremPoints(const Engine& engine, const TheoremInput& input, const Checkpoint& checkpoint);

} // namespace kvscope
