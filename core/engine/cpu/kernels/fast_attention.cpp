// Fast arithmetic of attention: products, exponentials and sums over keys in float, about three times as fast as
// double. Results depend on the instruction set in the last digits and are outside the index contract.
#include "core/engine/cpu/kernels/lanes.h"

namespace kvscope::cpu::KVSCOPE_LEVEL {

namespace {

typedef std::int32_t Integers __attribute__((vector_size(kFloats * sizeof(std::int32_t))));

/// e^x for x <= 0, relative error about 1e-7; 0 below -87.
[[gnu::always_inline]] inline Floats expOf(Floats x) {
    const Floats zero{}, lowest = zero - 87.0F;
    const Floats t = x < lowest ? lowest : x;
    const Floats shifted = t * 1.44269504F + 12582912.0F; // 1.5 2^23: the nearest integer in the low bits
    const Floats k = shifted - 12582912.0F;
    const Floats r = (t - k * 0.693359375F) + k * 2.12194440e-4F;
    Floats p = zero + 1.0F / 720.0F;
    p = p * r + 1.0F / 120.0F;
    p = p * r + 1.0F / 24.0F;
    p = p * r + 1.0F / 6.0F;
    p = p * r + 0.5F;
    p = 1.0F + (r + r * r * p);
    const Floats scale = __builtin_bit_cast(Floats, (__builtin_bit_cast(Integers, shifted) + 127) << 23);
    return x < lowest ? zero : p * scale;
}

/// tanh by e^-2|x|, whose argument is never positive.
[[gnu::always_inline]] inline Floats tanhOf(Floats x) {
    const Floats zero{}, size = x < zero ? -x : x;
    const Floats e = expOf(-2.0F * size), t = (1.0F - e) / (1.0F + e);
    return x < zero ? -t : t;
}

/// Logits of NV vectors of lanes and NK keys.
template <int NV, int NK> void floatTile(const FastLogits& p, I lane, I term) {
    Floats sum[NK][NV] = {};
    for (I c = 0; c < p.depth; ++c) {
#pragma GCC unroll 8
        for (int v = 0; v < NV; ++v) {
            const Floats x = loadFloats(p.lanes + c * kMaxLanes + lane + v * kFloats);
#pragma GCC unroll 8
            for (int k = 0; k < NK; ++k) sum[k][v] += x * p.keys[(term + k) * p.depth + c];
        }
    }
    for (int k = 0; k < NK; ++k)
        for (int v = 0; v < NV; ++v) storeFloats(p.logits + (term + k) * kMaxLanes + lane + v * kFloats, sum[k][v]);
}

void products(const FastLogits& p) {
    constexpr int kVectors = kLanes == 8 ? 2 : 4, kKeys = kLanes == 8 ? 12 : 3;
    for (I lane = 0; lane < kMaxLanes; lane += kVectors * kFloats) {
        I term = 0;
        for (; term + kKeys <= p.terms; term += kKeys) floatTile<kVectors, kKeys>(p, lane, term);
        for (; term < p.terms; ++term) floatTile<kVectors, 1>(p, lane, term);
    }
}

/// Scaled logits in place.
void shape(const FastLogits& p) {
    for (I t = 0; t < p.terms; ++t)
        for (I v = 0; v < kMaxLanes / kFloats; ++v) {
            float* at = p.logits + t * kMaxLanes + v * kFloats;
            Floats x = loadFloats(at) * p.scaling;
            if (p.softcap > 0) x = p.softcap * tanhOf(x / p.softcap);
            storeFloats(at, x);
        }
}

constexpr I kVectors = kMaxLanes / kFloats;

} // namespace

void fastLogits(const FastLogits& p) {
    products(p);
    shape(p);
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
        double all = 0;
        for (int l = 0; l < kFloats; ++l) all += double(sum[l]);
        total[t] += all;
    }
}

} // namespace kvscope::cpu::KVSCOPE_LEVEL
