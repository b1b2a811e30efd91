// Fast arithmetic of attention and leverage: products, exponentials and sums over keys in float, about three times as
// fast as double. Results depend on the instruction set in the last digits and are outside the index contract.
#include "core/engine/cpu/kernels/lanes.h"

namespace kvscope::cpu::KVSCOPE_LEVEL {

namespace {

/// e^x for x <= 0, relative error about 1e-7; 0 below -87.
[[gnu::always_inline]] inline Floats expOf(Floats x) {
    const Floats zero{};
    return x < zero - 87.0F ? zero : clampedExp<6>(x);
}

/// tanh by e^-2|x|, whose argument is never positive.
[[gnu::always_inline]] inline Floats tanhOf(Floats x) {
    const Floats zero{}, size = x < zero ? -x : x;
    const Floats e = expOf(-2.0F * size), t = (1.0F - e) / (1.0F + e);
    return x < zero ? -t : t;
}

/// The products of NV vectors of lanes and NK factors.
template <int NV, int NK> void floatTile(const FloatProduct& p, I lane, I factor) {
    const float* factors = p.factors + factor * p.factorStride;
    Floats sum[NK][NV];
    for (int k = 0; k < NK; ++k)
        for (int v = 0; v < NV; ++v) sum[k][v] = p.start ? loadFloats(p.start + lane + v * kFloats) : Floats{};
    for (I c = 0; c < p.depth; ++c) {
#pragma GCC unroll 16
        for (int v = 0; v < NV; ++v) {
            const Floats x = loadFloats(p.lanes + c * p.laneStride + lane + v * kFloats);
#pragma GCC unroll 16
            for (int k = 0; k < NK; ++k) sum[k][v] += x * factors[k * p.factorStride + c];
        }
    }
    for (int k = 0; k < NK; ++k)
        for (int v = 0; v < NV; ++v)
            storeFloats(p.out + (factor + k) * p.outStride + lane + v * kFloats, sum[k][v] * p.scaling);
}

template <int NV, int NK> void floatColumn(const FloatProduct& p, I lane) {
    I factor = 0;
    for (; factor + NK <= p.factorCount; factor += NK) floatTile<NV, NK>(p, lane, factor);
    for (; factor < p.factorCount; ++factor) floatTile<NV, 1>(p, lane, factor);
}

void cap(const FastLogits& p) {
    for (I i = 0; i < p.terms * kMaxLanes; i += kFloats)
        storeFloats(p.logits + i, p.softcap * tanhOf(loadFloats(p.logits + i) / p.softcap));
}

constexpr I kVectors = kMaxLanes / kFloats;

} // namespace

// Takes as many lanes at a time as leave registers for the factors of a step.
void fastProduct(const FloatProduct& p) {
    I lane = 0;
    if constexpr (kLanes == 8)
        for (; lane + 4 * kFloats <= p.laneCount; lane += 4 * kFloats) floatColumn<4, 6>(p, lane);
    constexpr int kWide = kLanes == 8 ? 2 : 4, kFactors = kLanes == 8 ? 12 : 3;
    for (; lane + kWide * kFloats <= p.laneCount; lane += kWide * kFloats) floatColumn<kWide, kFactors>(p, lane);
    for (; lane < p.laneCount; lane += kFloatLaneStep) floatColumn<kFloatLaneStep / kFloats, kFactors>(p, lane);
}

void fastLogits(const FastLogits& p) {
    fastProduct({.lanes = p.lanes,
                 .laneStride = kMaxLanes,
                 .laneCount = kMaxLanes,
                 .factors = p.keys,
                 .factorCount = p.terms,
                 .factorStride = p.depth,
                 .depth = p.depth,
                 .start = nullptr,
                 .scaling = p.scaling,
                 .out = p.logits,
                 .outStride = kMaxLanes});
    if (p.softcap > 0) cap(p);
}

void fastUpdateRowMaxima(const float* x, I terms, float* rowMax) {
    Floats best[kVectors];
    for (I v = 0; v < kVectors; ++v) best[v] = loadFloats(rowMax + v * kFloats);
    for (I t = 0; t < terms; ++t)
        for (I v = 0; v < kVectors; ++v) {
            const Floats value = loadFloats(x + t * kMaxLanes + v * kFloats);
            best[v] = value > best[v] ? value : best[v];
        }
    for (I v = 0; v < kVectors; ++v) storeFloats(rowMax + v * kFloats, best[v]);
}

void fastExponentials(float* x, I terms, const float* rowMax, double* total) {
    constexpr I kTermsPerSum = 256; // longer sums go to double, because float rounding would accumulate
    Floats shift[kVectors];
    for (I v = 0; v < kVectors; ++v) shift[v] = loadFloats(rowMax + v * kFloats);
    for (I begin = 0; begin < terms; begin += kTermsPerSum) {
        const I end = begin + kTermsPerSum < terms ? begin + kTermsPerSum : terms;
        Floats sum[kVectors] = {};
        for (I t = begin; t < end; ++t)
            for (I v = 0; v < kVectors; ++v) {
                float* at = x + t * kMaxLanes + v * kFloats;
                const Floats e = expOf(loadFloats(at) - shift[v]);
                storeFloats(at, e);
                sum[v] += e;
            }
        for (I lane = 0; lane < kMaxLanes; ++lane) total[lane] += double(sum[lane / kFloats][lane % kFloats]);
    }
}

void fastAddAcrossLanes(const float* x, I terms, const float* factor, double* total) {
    Floats share[kVectors];
    for (I v = 0; v < kVectors; ++v) share[v] = loadFloats(factor + v * kFloats);
    for (I t = 0; t < terms; ++t) {
        Floats sum{};
        for (I v = 0; v < kVectors; ++v) sum += loadFloats(x + t * kMaxLanes + v * kFloats) * share[v];
        const auto halves = __builtin_bit_cast(Halves, sum);
        double part[kLanes];
        store(part, __builtin_convertvector(halves.low, Vector) + __builtin_convertvector(halves.high, Vector));
        for (int half = kLanes / 2; half > 0; half /= 2)
            for (int l = 0; l < half; ++l) part[l] += part[l + half];
        total[t] += part[0];
    }
}

} // namespace kvscope::cpu::KVSCOPE_LEVEL
