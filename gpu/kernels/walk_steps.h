#pragma once

#include "core/base/portable_math.h"
#include "gpu/kernels/softmax_steps.h"
#include "gpu/kernels/walks_call.h"

#include <cstdint>

// One entry of a balancing walk's kernel matrix and one step of the walk, operation by operation as in the CPU engine;
// and the cheaper entry of fast arithmetic.
namespace kvscope::gpu {

/// What a row contributes to its entries: <k, c> - <c, c> / 2 and its weight x.
struct WalkTerm {
    double term, weight;
};

/// M_ij from <k_i, k_j> and <v_i, v_j> (0 without values). Exponents above 500 count as 500.
KVSCOPE_PORTABLE double walkEntry(const WalkRule& rule, double keys, double values, const WalkTerm& row,
                                  const WalkTerm& lane) {
    double exponent = rule.logScale * (keys - row.term - lane.term) - rule.logShift;
    exponent = exponent > 500 ? 500 : exponent;
    const double product = values * row.weight * lane.weight;
    return portableExp(exponent) * (rule.valueScale * product + rule.valueConstant);
}

/// The same from float products. Beyond the range of a float the exponential is computed in double, so that large
/// entries keep their order up to the same limit.
KVSCOPE_PORTABLE double fastWalkEntry(const WalkRule& rule, float keys, float values, const WalkTerm& row,
                                      const WalkTerm& lane) {
    const float centred = keys - float(row.term) - float(lane.term);
    float exponent = float(rule.logScale) * centred - float(rule.logShift);
    exponent = exponent > 500 ? 500 : exponent;
    const bool isShort = exponent > -80 && exponent < 80; // false for NaN
    const double power = isShort ? double(softmaxExp(exponent)) : portableExp(double(exponent));
    return power * (rule.valueScale * (double(values) * row.weight * lane.weight) + rule.valueConstant);
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
