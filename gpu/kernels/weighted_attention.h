#pragma once

#include "gpu/kernels/attention_call.h"

// Attention over weighted samples of the tokens (WeightedAttentionInput): z_j = sum_i x_i e^(l_ij) v_i / (e^sink +
// sum_i y_i e^(l_ij)). Logits and weights exist only in tiles (online softmax over gathered keys, as in
// FlashAttention); with few queries the terms are split over blocks and merged, as in Flash-Decoding. Two launches.
namespace kvscope::gpu {

/// All pointers are device memory.
struct WeightedAttentionCall {
    /// Its groups are the query heads that read one KV head with one kept set. Causal; keyPositions and queryRows null.
    AttentionCall attention;
    DeviceRows values;                     ///< [Hkv, n, dv]
    std::int64_t groupCount = 0;           ///< G
    const std::int32_t* kvHeads = nullptr; ///< [G]
    /// Terms of group g: the entries offsets[g] .. offsets[g + 1] of the lists, in any order, then the tokens from
    /// `tail` on with both weights 1.
    const std::int64_t* offsets = nullptr;
    const std::int32_t* tokens = nullptr;
    const float *numerator = nullptr, *denominator = nullptr; ///< x and y
    std::int64_t mostListed = 0;                              ///< largest number of listed terms of a group
    std::int64_t tail = 0;
    const float* sinks = nullptr; ///< [slots]; null: none
    DeviceRows reference;         ///< [Hq, w, dv] of the queries of the call; data null: none

    /// [Hq, ...] with room for outStride queries of each head, of which the call writes the first R.
    std::int64_t outStride = 0;
    float* output = nullptr; ///< [.., dv]; null with a reference
    float *logDenominator = nullptr, *logNorm = nullptr;
    float* error = nullptr;    ///< null without a reference
    double* scratch = nullptr; ///< [weightedScratch]
};

std::int64_t weightedScratch(const WeightedAttentionCall& call);
void weightedAttention(const WeightedAttentionCall& call, Stream stream);

} // namespace kvscope::gpu
