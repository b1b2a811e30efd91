#pragma once

#include "gpu/kernels/double_products.h"
#include "gpu/kernels/row_placer.h"
#include "gpu/kernels/tensor_products.h"
#include "gpu/kernels/tile_walk.h"

// What the attention kernels do with tiles of products.
namespace kvscope::gpu {

__device__ __forceinline__ TileRows queriesOf(const AttentionCall& call, const TileSide& side) {
    return rowsAt(call.queries, side.offsets);
}

__device__ __forceinline__ TileRows keysOf(const AttentionCall& call, const TileSide& side) {
    return rowsAt(call.keys, side.offsets);
}

/// Sets the logits to -infinity that isSeenAt(row, column) denies. The masks have a loop of their own: unrolled with
/// the values, they would be most of the kernel's code.
template <class Tile, class IsSeenAt>
__device__ __forceinline__ void maskLogits(typename Tile::Value (&logits)[Tile::kSlots][Tile::kPerSlot],
                                           const IsSeenAt& isSeenAt) {
    constexpr int kValues = Tile::kSlots * Tile::kPerSlot;
    static_assert(kValues <= 32);
    std::uint32_t seen = 0;
    KVSCOPE_ROLL for (int i = 0; i < kValues; ++i) seen |=
        std::uint32_t{isSeenAt(Tile::rowOf(i / Tile::kPerSlot), Tile::columnOf(i % Tile::kPerSlot))} << i;
    KVSCOPE_UNROLL for (int i = 0; i < kValues; ++i) {
        if ((seen >> i & 1) == 0)
            logits[i / Tile::kPerSlot][i % Tile::kPerSlot] = -typename Tile::Value(__builtin_inff());
    }
}

/// The largest or the sum over the four lanes that share a row of a tile.
template <class Number, class Both> __device__ __forceinline__ Number overRow(Number value, const Both& both) {
    value = both(value, __shfl_xor_sync(kAllLanes, value, 1));
    return both(value, __shfl_xor_sync(kAllLanes, value, 2));
}

/// Converts a query's logits, value * factor, to weights.
template <class Number> struct WeightShift;

template <> struct WeightShift<double> {
    double rowMax, inverseSum;

    __device__ __forceinline__ double weightOf(double value, double factor) const {
        return powerOf(multiplyAdd(value, factor, -rowMax)) * inverseSum;
    }
};

template <> struct WeightShift<float> {
    float logSumExp; ///< in units of ln 2

    __device__ __forceinline__ float weightOf(float value, float factor) const {
        return powerOf(multiplyAdd(value, factor, -logSumExp));
    }
};

/// The normaliser of a place; slot -1, or none at all: every weight is 0.
__device__ __forceinline__ SoftmaxNormaliser normaliserAt(const SoftmaxNormaliser* normalisers, std::int64_t slot) {
    return slot < 0 || !normalisers ? SoftmaxNormaliser{0, 0} : normalisers[slot];
}

template <class Number> __device__ __forceinline__ WeightShift<Number> shiftOf(const SoftmaxNormaliser& one) {
    if constexpr (std::is_same_v<Number, double>)
        return {one.rowMax, one.inverseSum};
    else
        return {kLogitsPerNat<float> * float(one.rowMax) - log2f(float(one.inverseSum))};
}

/// Calls work with the kind of products for the rows and the arithmetic.
/// Floats have no tensor cores of their own: they are multiplied exactly in fast arithmetic, too.
template <class Work> void withTile(const AttentionCall& call, const Work& work) {
    if (call.arithmetic == KernelArithmetic::Exact || call.queries.type == ElementType::Float32)
        work(DoubleProducts<16, 32>{});
    else if (call.queries.type == ElementType::BFloat16)
        work(TensorProducts<BFloat16>{});
    else
        work(TensorProducts<Float16>{});
}

} // namespace kvscope::gpu
