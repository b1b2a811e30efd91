#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

/// Policies as plain loops in double, written from the formulas of the papers. Nothing of core is used but the random
/// number of a place (core/base/random.h), which is a definition and not an algorithm.
namespace naive_policies {

using Vector = std::vector<double>;
template <class T> using PerHead = std::vector<T>;

struct Layer {
    PerHead<std::vector<Vector>> keys;    ///< [Hkv][n][d]
    PerHead<std::vector<Vector>> preRope; ///< [Hkv][n][d] keys before RoPE; empty: those above
    PerHead<std::vector<Vector>> queries; ///< [Hq][w][d], query r at time firstQuery + r
    int firstQuery = 0;
    std::vector<int> gqaGroupOf; ///< [Hq]
    double scaling = 1, softcap = 0;
    int slidingWindow = 0;
    int layer = 0, numLayers = 8; ///< of the model
    std::uint64_t seed = 0;

    int tokens() const { return static_cast<int>(keys.front().size()); }
};

using Options = std::map<std::string, std::string>; ///< parameter id, text

/// The queries [begin, end) attended to the cached tokens `rows` [Hkv][m]: what H2O adds up.
struct Visit {
    int begin = 0, end = 0;
    PerHead<std::vector<int>> rows;
};

/// [Hkv][m] scores of the cached tokens `rows` [Hkv][m] when the tokens [0, end) have been seen, in these visits.
PerHead<Vector> scores(const std::string& policy, const Options& options, const Layer& layer,
                       const PerHead<std::vector<int>>& rows, int end, const std::vector<Visit>& visits = {});

struct Step {
    int end = 0, cached = 0;
    PerHead<std::vector<int>> evicted;
};

struct Result {
    PerHead<std::vector<int>> kept;
    PerHead<std::vector<int>> queryHeads; ///< [Hq] where each query head has a set of its own: `kept` are unions then
    PerHead<std::vector<int>> rows;       ///< tokens that the last scores belong to
    PerHead<Vector> scores;
    std::vector<Step> steps;
    /// Smallest gap between a kept and an evicted free score in any step, relative to their size: below float rounding
    /// the choice is not decided by the formulas.
    double closest = 1e300;
};

/// One shot, or in blocks where the options say so. Budget "0.25" or "24t".
Result run(const std::string& policy, const Options& options, const Layer& layer, const std::string& budget);

/// Tokens kept of n.
int budgetTokens(const std::string& budget, int n, const std::string& rounding);

/// PyramidKV: tokens kept of n in the layer when `budget` is asked for, `rounded` to tokens.
int pyramidTokens(const Options& options, const Layer& layer, int n, int rounded, const std::string& budget);
/// kvpress's compression_ratio for a fraction kept as typed.
double fractionRemoved(std::string digits);

} // namespace naive_policies
