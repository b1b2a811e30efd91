#pragma once

#include "core/engine/cpu/kernels.h"

// Shared by the kernel sources; each is compiled once per instruction set with KVSCOPE_LEVEL = v2, v3 or v4.
// Nothing here may call a function that could be emitted out of line under a name shared between the builds: no
// standard library, everything in an unnamed namespace inside namespace KVSCOPE_LEVEL.

#if defined(__AVX512F__)
#define KVSCOPE_LANES 8
#elif defined(__AVX2__)
#define KVSCOPE_LANES 4
#else
#define KVSCOPE_LANES 2
#endif

namespace kvscope::cpu::KVSCOPE_LEVEL {

namespace {

using I = std::int64_t;
constexpr int kLanes = KVSCOPE_LANES;

typedef double Vector __attribute__((vector_size(kLanes * sizeof(double))));
typedef double LooseVector __attribute__((vector_size(kLanes * sizeof(double)), aligned(8), may_alias));

typedef std::uint64_t VectorBits __attribute__((vector_size(kLanes * sizeof(std::uint64_t))));

[[gnu::always_inline]] inline Vector load(const double* p) { return *reinterpret_cast<const LooseVector*>(p); }
[[gnu::always_inline]] inline void store(double* p, Vector v) { *reinterpret_cast<LooseVector*>(p) = v; }

constexpr int kFloats = 2 * kLanes;
typedef float Floats __attribute__((vector_size(kFloats * sizeof(float))));
typedef float LooseFloats __attribute__((vector_size(kFloats * sizeof(float)), aligned(4), may_alias));

[[gnu::always_inline]] inline Floats loadFloats(const float* p) { return *reinterpret_cast<const LooseFloats*>(p); }
[[gnu::always_inline]] inline void storeFloats(float* p, Floats v) { *reinterpret_cast<LooseFloats*>(p) = v; }

typedef std::int32_t Integers __attribute__((vector_size(kFloats * sizeof(std::int32_t))));
typedef float HalfFloats __attribute__((vector_size(kLanes * sizeof(float))));
typedef float LooseHalfFloats __attribute__((vector_size(kLanes * sizeof(float)), aligned(4), may_alias));
struct Halves {
    HalfFloats low, high;
};

/// e^x for x <= 80 by 2^k and the Taylor polynomial of a degree, 6 or 7; e^-87 below -87.
template <int kDegree> [[gnu::always_inline]] inline Floats clampedExp(Floats x) {
    const Floats zero{}, lowest = zero - 87.0F;
    const Floats t = x < lowest ? lowest : x;
    const Floats shifted = t * 1.44269504F + 12582912.0F; // 1.5 2^23: the nearest integer in the low bits
    const Floats k = shifted - 12582912.0F;
    const Floats r = (t - k * 0.693359375F) + k * 2.12194440e-4F;
    Floats p = zero + (kDegree == 7 ? 1.0F / 5040.0F : 1.0F / 720.0F);
    if constexpr (kDegree == 7) p = p * r + 1.0F / 720.0F;
    p = p * r + 1.0F / 120.0F;
    p = p * r + 1.0F / 24.0F;
    p = p * r + 1.0F / 6.0F;
    p = p * r + 0.5F;
    p = 1.0F + (r + r * r * p);
    return p * __builtin_bit_cast(Floats, (__builtin_bit_cast(Integers, shifted) + 127) << 23);
}

struct Multiply {
    [[gnu::always_inline]] static Vector add(Vector sum, Vector a, double b) { return sum + a * b; }
};

struct SquareDifference {
    [[gnu::always_inline]] static Vector add(Vector sum, Vector a, double b) {
        const Vector difference = a - b;
        return sum + difference * difference;
    }
};

/// NV vectors of lanes times NK factors: NV * NK accumulators stay in registers over the whole depth.
template <class Operation, int NV, int NK> void tile(const Product& p, I lane, I factor) {
    const double* a = p.lanes + lane;
    const double* b = p.factors + factor * p.factorStride;
    double* out = p.out + factor * p.outStride + lane;
    Vector sum[NK][NV];
    for (int k = 0; k < NK; ++k)
        for (int v = 0; v < NV; ++v) sum[k][v] = p.accumulate ? load(out + k * p.outStride + v * kLanes) : Vector{};
    for (I c = 0; c < p.depth; ++c) {
        const double* row = a + c * p.laneStride;
        const double* scalars = b + c * p.depthStride;
#pragma GCC unroll 8
        for (int v = 0; v < NV; ++v) {
            const Vector x = load(row + v * kLanes);
#pragma GCC unroll 8
            for (int k = 0; k < NK; ++k) sum[k][v] = Operation::add(sum[k][v], x, scalars[k * p.factorStride]);
        }
    }
    for (int k = 0; k < NK; ++k)
        for (int v = 0; v < NV; ++v) store(out + k * p.outStride + v * kLanes, sum[k][v]);
}

template <class Operation, int NV, int NK> void laneColumn(const Product& p, I lane) {
    I factor = 0;
    for (; factor + NK <= p.factorCount; factor += NK) tile<Operation, NV, NK>(p, lane, factor);
    for (; factor < p.factorCount; ++factor) tile<Operation, NV, 1>(p, lane, factor);
}

/// In tiles of NV vectors and NK factors, whose accumulators leave registers for a step's operands; the last lanes in
/// tiles of 4 factors, which divide a factor count that is a multiple of 8 without a remainder.
template <class Operation, int NV, int NK> void blockProduct(const Product& p) {
    I lane = 0;
    for (; lane + NV * kLanes <= p.laneCount; lane += NV * kLanes) laneColumn<Operation, NV, NK>(p, lane);
    for (; lane < p.laneCount; lane += kLaneStep) laneColumn<Operation, kLaneStep / kLanes, 4>(p, lane);
}

} // namespace

// Kernels of the other sources, for the table kKernels in elementwise.cpp.
void rowProducts(const float* rows, I n, I d, const float* other, double* dots, double* squares);
void widenFloats(const float* from, I count, double* to);
void exactProduct(const Product& p);
void floatDistances(const float* rows, I n, I d, const float* other, float* distances);
void walkPanel(const WalkPanel& p);
void shiftedRow(const float* row, const double* centre, double factor, I d, float* to);
void interleave(const float* rows, I d, float factor, float* to);
void fastLogits(const FastLogits& p);
void fastProduct(const FloatProduct& p);
void fastUpdateRowMaxima(const float* x, I terms, float* rowMax);
void fastExponentials(float* x, I terms, const float* rowMax, double* total);
void fastAddAcrossLanes(const float* x, I terms, const float* factor, double* sum);

} // namespace kvscope::cpu::KVSCOPE_LEVEL
