#pragma once

#include "core/base/portable_math.h"
#include "gpu/kernels/softmax_steps.h"
#include "gpu/kernels/walks_call.h"

#include <cstdint>
#include <type_traits>

// One entry of a balancing walk's kernel matrix and one step of the walk, operation by operation as in the CPU engine;
// and the cheaper entry of fast arithmetic.
namespace kvscope::gpu {

/// What a row contributes to its entries: <k, c> - <c, c> / 2 and its weight x.
struct WalkTerm {
    double term, weight;
};

/// What the entries need of a walk's rule, and of a row: for exponents in the numbers of the arithmetic, for values in
/// double, because values may have any size.
template <class Number> struct WalkFactors {
    Number logScale, logShift;
    double valueScale, valueConstant;

    KVSCOPE_PORTABLE explicit WalkFactors(const WalkRule& rule)
        : logScale(Number(rule.logScale)), logShift(Number(rule.logShift)), valueScale(rule.valueScale),
          valueConstant(rule.valueConstant) {}
};
template <class Number> struct RowFactors {
    Number term;
    double weight;

    KVSCOPE_PORTABLE explicit RowFactors(const WalkTerm& row) : term(Number(row.term)), weight(row.weight) {}
};

/// M_ij from <k_i, k_j> and <v_i, v_j> (0 without values). Exponents above 500 count as 500. Beyond the range of a
/// float the exponential of float products is computed in double, so that large entries keep their order up to that
/// limit.
template <class Number>
KVSCOPE_PORTABLE double walkEntry(const WalkFactors<Number>& walk, Number keys, Number values,
                                  const RowFactors<Number>& row, const RowFactors<Number>& lane) {
    Number exponent = walk.logScale * (keys - row.term - lane.term) - walk.logShift;
    exponent = exponent > 500 ? 500 : exponent;
    const double factor = walk.valueScale * (double(values) * row.weight * lane.weight) + walk.valueConstant;
    if constexpr (std::is_same_v<Number, float>)
        if (exponent > -80 && exponent < 80) return double(softmaxExp(exponent)) * factor; // false for NaN
    return portableExp(double(exponent)) * factor;
}

struct WalkStep {
    double sign = 0;
    double margin = 0; ///< |u - p|; +infinity where no sign was drawn
    WalkEnding ending = WalkEnding::Complete;
};

/// False for NaN and infinity.
KVSCOPE_PORTABLE bool isFiniteNumber(double x) { return x - x == 0; }

KVSCOPE_PORTABLE WalkStep walkStep(const WalkRule& rule, std::int64_t step, double product, double diagonal,
                                   double uniform, bool isSilent) {
    constexpr double kInfinity = __builtin_inf();
    if (!isFiniteNumber(product) || !isFiniteNumber(diagonal)) return {0, kInfinity, WalkEnding::NotFinite};
    if ((product < 0 ? -product : product) > rule.failAbove) return {0, kInfinity, WalkEnding::Failed};
    if (isSilent) return {0, kInfinity, WalkEnding::Complete};
    if (step == 0 && rule.firstIsPlus != 0) return {1, kInfinity, WalkEnding::Complete};
    const double p = 0.5 - rule.gamma * product, lead = uniform - p;
    return {uniform < p ? 1.0 : -1.0, lead < 0 ? -lead : lead, WalkEnding::Complete};
}

} // namespace kvscope::gpu
