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

template <class Operation, int NV> void laneColumn(const Product& p, I lane) {
    constexpr int kFactors = kLanes == 8 ? 6 : 3; // 24 accumulators of 32 registers, or 12 of 16
    I factor = 0;
    for (; factor + kFactors <= p.factorCount; factor += kFactors) tile<Operation, NV, kFactors>(p, lane, factor);
    for (; factor < p.factorCount; ++factor) tile<Operation, NV, 1>(p, lane, factor);
}

template <class Operation> void blockProduct(const Product& p) {
    constexpr int kVectors = 4;
    I lane = 0;
    for (; lane + kVectors * kLanes <= p.laneCount; lane += kVectors * kLanes) laneColumn<Operation, kVectors>(p, lane);
    for (; lane < p.laneCount; lane += kLaneStep) laneColumn<Operation, kLaneStep / kLanes>(p, lane);
}

} // namespace

// What the other sources hand to the table of instruction_set.cpp.
void rowProducts(const float* rows, I n, I d, const float* other, double* dots, double* squares);
void widenFloats(const float* from, I count, double* to);
void exactProduct(const Product& p);
void fastLogits(const FastLogits& p);
void fastUpdateRowMaxima(const float* x, I terms, float* rowMax);
void fastExponentials(float* x, I terms, const float* rowMax, double* total);
void fastAddAcrossLanes(const float* x, I terms, const float* factor, double* sum);

} // namespace kvscope::cpu::KVSCOPE_LEVEL
