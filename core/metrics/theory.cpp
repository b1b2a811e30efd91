// Requirements and bounds of the papers' theorems as functions of norms and targets. They are worst-case statements and
// often exceed any memory at the norms of real models (B1, C5).
#include "core/metrics/theory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

namespace kvscope {

namespace {

constexpr double kWalkConstant = 30; // of the self-balancing walk: c = 30 ln(m / delta)

/// e^{2 r^2 / sqrt d}
double balanceFactor(const TheoryNorms& norms) { return std::exp(2 * norms.radius() * norms.radius() * norms.scaling); }

/// "constant 1", and a remark if the prompt has fewer tokens than demanded.
std::string hidden(const std::string& constants, double demanded, std::int64_t tokens) {
    const std::string more = fmt::format("; the prompt has only {} tokens", tokens);
    return constants + (demanded > static_cast<double>(tokens) ? more : "");
}

void addBalance(const TheoryNorms& norms, const TheoryTargets& targets, std::vector<TheoryDemand>& demands) {
    const auto n = static_cast<double>(norms.tokens);
    const double batch = std::sqrt(static_cast<double>(norms.valueDim)) * balanceFactor(norms) / targets.epsilon;
    demands.push_back({"BalanceKV Thm 3.4", "batch t", "√s e^{2r²/√d} / ε", batch, targets.batch,
                       hidden("constants and logarithms are 1", batch, norms.tokens)});
    demands.push_back({.theorem = "BalanceKV Thm 3.4",
                       .quantity = "levels T",
                       .formula = "log₂(n / t); 0 or less means no compression",
                       .demanded = std::log2(n / batch),
                       .isSetting = false});
    demands.push_back(
        {"BalanceKV Algorithm 2", "c", "30 ln(m / δ), m = n", kWalkConstant * std::log(n / targets.delta)});
    const bool applies = norms.radius() * norms.radius() <= static_cast<double>(norms.keyDim);
    demands.push_back({.theorem = "BalanceKV Thm 3.2",
                       .quantity = "memory of any algorithm",
                       .formula = applies ? "min(1/ε², d e^{2r²/√d})" : "no statement: r² > d",
                       .demanded = applies ? std::min(1 / (targets.epsilon * targets.epsilon),
                                                      static_cast<double>(norms.keyDim) * balanceFactor(norms))
                                           : NAN,
                       .caveat = applies ? "at least so many bits, constant 1; the worst input, not this one" : "",
                       .isSetting = false,
                       .unit = " bits"});
}

void addSubGen(const TheoryNorms& norms, const TheoryTargets& targets, std::vector<TheoryDemand>& demands) {
    const double squared = targets.epsilon * targets.epsilon, r = norms.queryNorm * norms.scaling;
    const double slots =
                     std::exp(2 * targets.clusterDiameter * r) * std::log(static_cast<double>(norms.tokens)) / squared,
                 reservoir = static_cast<double>(norms.keyDim) / squared;
    demands.push_back({"SubGen Thm 1", "slots t", "ε⁻² e^{2δr} ln n, r of the scaled query", slots,
                       targets.clusterSlots, hidden("constant 1", slots, norms.tokens)});
    demands.push_back({"SubGen Thm 1", "reservoir s", "ε⁻² d", reservoir, targets.reservoir,
                       hidden("constant 1", reservoir, norms.tokens)});
}

void addCompactor(const TheoryNorms& norms, const TheoryTargets& targets, std::vector<TheoryDemand>& demands) {
    const auto d = static_cast<double>(norms.keyDim);
    const double rows = d * std::log(d / targets.delta) / (targets.epsilon * targets.epsilon),
                 columns = sketchColumnsDemanded(std::min(d, static_cast<double>(norms.tokens)), targets.epsilon,
                                                 targets.delta);
    demands.push_back({.theorem = "Compactor Thm 1",
                       .quantity = "sampled rows k",
                       .formula = "d ln(d / δ) / ε²",
                       .demanded = rows,
                       .caveat = hidden("constant C = 1", rows, norms.tokens)});
    demands.push_back(
        {"Compactor Thm 2", "sketch k", "12 ε⁻² (rank ln(42/ε) + ln(2/δ)), rank ≤ min(n, d)", columns, targets.sketch,
         columns > d ? fmt::format("more columns than the keys' d = {}, where a sketch is exact (C5)", norms.keyDim)
                     : ""});
}

} // namespace

std::vector<TheoryDemand> theoryDemands(const TheoryNorms& norms, const TheoryTargets& targets) {
    assert(norms.tokens > 0 && norms.keyDim > 0 && targets.epsilon > 0 && targets.delta > 0);
    std::vector<TheoryDemand> demands;
    addBalance(norms, targets, demands);
    addSubGen(norms, targets, demands);
    addCompactor(norms, targets, demands);
    return demands;
}

double leastCosineOfWeight(double weight, std::int64_t tokens, double squaredNorm) {
    assert(weight < 1 && squaredNorm >= 0); // 0: a zero query, or zero keys
    const auto n = static_cast<double>(tokens);
    const double most = std::max(1.0, squaredNorm); // the proof bounds |k.q| by M, which needs M >= 1 (K6)
    return (std::log(n / (n + 1)) - std::log1p(-weight)) / (2 * most) - 1;
}

double largestCosineToMean(double a, double b) { return 1 - (a - b) * (a - b) / 2; }

double sketchColumnsDemanded(double rank, double epsilon, double delta) {
    return 12 / (epsilon * epsilon) * (rank * std::log(42 / epsilon) + std::log(2 / delta));
}

LeverageRatioBounds leverageRatioBounds(double largestSingular, double smallestSingular, double epsilon) {
    assert(smallestSingular > 0 && epsilon >= 0 && epsilon < 1);
    const double kappa = (largestSingular / smallestSingular) * (largestSingular / smallestSingular);
    const double high = kappa * (1 + epsilon) / (1 - epsilon);
    return {1 / high, high};
}

} // namespace kvscope
