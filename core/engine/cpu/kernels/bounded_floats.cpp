// Distances and balancing walks in float, whose error the caller bounds. Contraction is on: the last digits depend on
// the instruction set, and only decisions that they cannot change are taken by them.
#include "core/engine/cpu/kernels/lanes.h"

namespace kvscope::cpu::KVSCOPE_LEVEL {

namespace {

constexpr int kVectors = 2, kTileRows = 4; // 8 sums and 8 totals of products
constexpr I kDepthStep = 16; // longer sums would round at the size of the whole sum: see walk_intervals.cpp
static_assert(kWalkRows % kTileRows == 0 && kMaxLanes % (kVectors * kFloats) == 0);

/// e^x with relative error below 8 2^-24 for -87 <= x <= 80; e^-87 below.
[[gnu::always_inline]] inline Floats expOf(Floats x) { return clampedExp<7>(x); }

/// Widens kFloats numbers.
[[gnu::always_inline]] inline void storeWide(double* to, Floats x) {
    const auto halves = __builtin_bit_cast(Halves, x);
    store(to, __builtin_convertvector(halves.low, Vector));
    store(to + kLanes, __builtin_convertvector(halves.high, Vector));
}

[[gnu::always_inline]] inline void addTo(double* sum, Floats x) {
    const auto halves = __builtin_bit_cast(Halves, x);
    store(sum, load(sum) + __builtin_convertvector(halves.low, Vector));
    store(sum + kLanes, load(sum + kLanes) + __builtin_convertvector(halves.high, Vector));
}

template <int NV> using Tile = Floats[kTileRows][NV];

/// Inner products of kTileRows rows and NV vectors of lanes: sums over steps of the depth, which are then added.
template <int NV>
[[gnu::always_inline]] inline void products(const float* lanes, const float* rows, I depth, Tile<NV>& total) {
    for (int k = 0; k < kTileRows; ++k)
        for (int v = 0; v < NV; ++v) total[k][v] = Floats{};
    for (I begin = 0; begin < depth; begin += kDepthStep) {
        const I end = begin + kDepthStep < depth ? begin + kDepthStep : depth;
        Tile<NV> sum = {};
        for (I c = begin; c < end; ++c) {
            Floats x[NV];
            for (int v = 0; v < NV; ++v) x[v] = loadFloats(lanes + c * kMaxLanes + v * kFloats);
#pragma GCC unroll 8
            for (int k = 0; k < kTileRows; ++k)
                for (int v = 0; v < NV; ++v) sum[k][v] += x[v] * rows[k * depth + c];
        }
#pragma GCC unroll 8
        for (int k = 0; k < kTileRows; ++k)
            for (int v = 0; v < NV; ++v) total[k][v] += sum[k][v];
    }
}

/// NV vectors of lanes against rows [row, row + kTileRows). On the diagonal a lane sums only over the rows before it.
template <int NV, bool IsDiagonal> [[gnu::always_inline]] inline void tile(const WalkPanel& p, I lane, I row) {
    Tile<NV> logits, values;
    products<NV>(p.keyLanes + lane, p.keys + row * p.keyDepth, p.keyDepth, logits);
    products<NV>(p.valueLanes + lane, p.values + row * p.valueDepth, p.valueDepth, values);
#pragma GCC unroll 2
    for (int v = 0; v < NV; ++v) {
        const Floats zero{};
        const I first = lane + v * kFloats;
        Floats y{}, sizes{}, reaches{};
        Integers own{};
        for (int l = 0; IsDiagonal && l < kFloats; ++l) own[l] = static_cast<std::int32_t>(first) + l;
#pragma GCC unroll 8
        for (int k = 0; k < kTileRows; ++k) {
            Floats e = expOf(logits[k][v] - p.logShift);
            const Floats entry = e * (values[k][v] + p.valueConstant);
            if (IsDiagonal) {
                const I place = row + k - p.before;
                storeWide(p.matrix + place * kMaxLanes + first, entry);
                e = own > Integers{} + static_cast<std::int32_t>(place) ? e : zero;
            } else {
                y += p.signs[row + k] * entry;
            }
            sizes += p.sizes[row + k] * e;
            reaches += p.reaches[row + k] * e;
        }
        if (!IsDiagonal) addTo(p.y + first, y);
        addTo(p.sizeSums + first, sizes);
        addTo(p.reachSums + first, reaches);
    }
}

} // namespace

void walkPanel(const WalkPanel& p) {
    constexpr I kStep = kVectors * kFloats;
    for (I l = 0; l < kMaxLanes; ++l) p.y[l] = p.sizeSums[l] = p.reachSums[l] = 0;
    for (I lane = 0; lane < kMaxLanes; lane += kStep) {
        for (I row = 0; row < p.before; row += kTileRows) tile<kVectors, false>(p, lane, row);
        // Entries of lanes before a row are not needed.
        I row = p.before;
        for (; row < p.rows && row < p.before + lane + kFloats; row += kTileRows) tile<kVectors, true>(p, lane, row);
        for (; row < p.rows && row < p.before + lane + kStep; row += kTileRows) tile<1, true>(p, lane + kFloats, row);
    }
}

void shiftedRow(const float* row, const double* centre, double factor, I d, float* __restrict to) {
    if (centre)
        for (I c = 0; c < d; ++c) to[c] = static_cast<float>(factor * (double(row[c]) - centre[c]));
    else
        for (I c = 0; c < d; ++c) to[c] = static_cast<float>(factor * double(row[c]));
}

void interleave(const float* rows, I d, float factor, float* __restrict to) {
    for (I c = 0; c < d; ++c)
        for (I lane = 0; lane < kMaxLanes; ++lane) to[c * kMaxLanes + lane] = factor * rows[lane * d + c];
}

void floatDistances(const float* rows, I n, I d, const float* other, float* distances) {
    for (I r = 0; r < n; ++r) {
        const float* row = rows + r * d;
        Floats sum{};
        I c = 0;
        for (; c + kFloats <= d; c += kFloats) {
            const Floats difference = loadFloats(row + c) - loadFloats(other + c);
            sum += difference * difference;
        }
        float rest = 0;
        for (; c < d; ++c) rest += (row[c] - other[c]) * (row[c] - other[c]);
        float part[kFloats];
        storeFloats(part, sum);
        for (int half = kFloats / 2; half > 0; half /= 2)
            for (int l = 0; l < half; ++l) part[l] += part[l + half];
        distances[r] = part[0] + rest;
    }
}

} // namespace kvscope::cpu::KVSCOPE_LEVEL
