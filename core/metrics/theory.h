#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

namespace kvscope {

/// The numbers of one KV head that the theorems use: largest norms; queries are the evaluation queries.
struct TheoryNorms {
    std::int64_t tokens = 0, keyDim = 0, valueDim = 0;
    double scaling = 0; ///< factor on q.k, in place of the papers' 1 / sqrt d
    double queryNorm = 0, keyNorm = 0;

    double radius() const { return queryNorm > keyNorm ? queryNorm : keyNorm; } ///< r of BalanceKV
};

/// Accuracy targets of the user, and the current parameters (NaN: not set).
struct TheoryTargets {
    double epsilon = 0.1, delta = 0.01;
    double clusterDiameter = 1; ///< delta of SubGen
    double batch = NAN;         ///< t of MergeAndReduce
    double clusterSlots = NAN;  ///< t of SubGen
    double reservoir = NAN;     ///< s of SubGen
    double sketch = NAN;        ///< k of Compactor
};

/// What a theorem asks for at given norms, and what is set.
struct TheoryDemand {
    std::string theorem, quantity, formula;
    double demanded = 0; ///< infinity beyond the double range, NaN where the theorem says nothing
    double set = NAN;
    std::string caveat = {}; ///< constants set to 1, a regime that is empty at these sizes; empty: none
    bool isSetting = true;   ///< false: a number that the theorem states, which no parameter must reach
    std::string unit = {};   ///< after the number: " bits"

    bool met() const { return isSetting && set >= demanded; }
};

/// The requirements of BalanceKV (Thms 3.2 and 3.4, Algorithm 2), SubGen (Thm 1) and Compactor (Thms 1, 2). Constants
/// inside O() are taken as 1, and the caveats say so.
std::vector<TheoryDemand> theoryDemands(const TheoryNorms& norms, const TheoryTargets& targets);

/// KeyDiff Theorem C.1 (Lemma 3.1 is its limit for many tokens): least cos(k*, q) of a unit query for a key with
/// attention weight w < 1 and ||k||^2 < M.
double leastCosineOfWeight(double weight, std::int64_t tokens, double squaredNorm);
/// KeyDiff Thm 3.2: largest cos(mean key, k*) given a = cos(mean key, q) and b = cos(k*, q).
double largestCosineToMean(double a, double b);

/// Compactor Thm 2: columns that a Gaussian sketch needs, 12 eps^-2 (rank ln(42 / eps) + ln(2 / delta)) (C5).
double sketchColumnsDemanded(double rank, double epsilon, double delta);
/// Compactor Thm 2: sketched over exact leverage lies in [kappa^-1 (1 - eps) / (1 + eps), kappa (1 + eps) / (1 - eps)],
/// kappa = (s_max / s_min)^2 as its proof has it.
struct LeverageRatioBounds {
    double low = 0, high = 0;
};
LeverageRatioBounds leverageRatioBounds(double largestSingular, double smallestSingular, double epsilon);

} // namespace kvscope
