#pragma once

#include "gpu/kernels/attention_rows.h"
#include "gpu/kernels/double_products.h"
#include "gpu/kernels/tensor_products.h"

// What the attention kernels do with tiles of products.
namespace kvscope::gpu {

/// Makes logits of products, and -infinity of those that isSeenAt(row, column) denies; `whole`: it denies none.
template <class Tile, class IsSeenAt>
__device__ __forceinline__ void makeLogits(const LogitShape<typename Tile::Value>& shape, bool whole,
                                           typename Tile::Value (&values)[Tile::kSlots][Tile::kPerSlot],
                                           const IsSeenAt& isSeenAt) {
    KVSCOPE_UNROLL for (int slot = 0; slot < Tile::kSlots; ++slot) {
        KVSCOPE_UNROLL for (int k = 0; k < Tile::kPerSlot; ++k) {
            values[slot][k] = shape.of(values[slot][k]);
            if (!whole && !isSeenAt(Tile::rowOf(slot), Tile::columnOf(k)))
                values[slot][k] = -typename Tile::Value(__builtin_inff());
        }
    }
}

/// What makes weights of a query's logits.
template <class Number> struct WeightShift;

template <> struct WeightShift<double> {
    double rowMax, inverseSum;

    __device__ __forceinline__ double weightOf(double logit) const { return powerOf(logit - rowMax) * inverseSum; }
};

template <> struct WeightShift<float> {
    float logSumExp; ///< in units of ln 2

    __device__ __forceinline__ float weightOf(float logit) const { return powerOf(logit - logSumExp); }
};

/// Of a place without a query, slot -1: every weight is 0.
template <class Number>
__device__ __forceinline__ WeightShift<Number> shiftOf(const SoftmaxNormaliser* normalisers, std::int64_t slot) {
    const SoftmaxNormaliser one = slot < 0 ? SoftmaxNormaliser{0, 0} : normalisers[slot];
    if constexpr (std::is_same_v<Number, double>)
        return {one.rowMax, one.inverseSum};
    else
        return {kLogitsPerNat<float> * float(one.rowMax) - log2f(float(one.inverseSum))};
}

/// Calls work with the kind of products for the rows and the arithmetic. Floats have no tensor cores of their own: they
/// are multiplied exactly in fast arithmetic, too.
template <class Work> void withTile(const AttentionCall& call, const Work& work) {
    if (call.arithmetic == KernelArithmetic::Exact || call.queries.type == ElementType::Float32)
        work(DoubleProducts<16, 32>{});
    else if (call.queries.type == ElementType::BFloat16)
        work(TensorProducts<BFloat16, 32, 32>{});
    else
        work(TensorProducts<Float16, 32, 32>{});
}

} // namespace kvscope::gpu
