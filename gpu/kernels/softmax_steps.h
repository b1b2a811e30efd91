#pragma once

#include "core/base/portable_math.h"
#include "gpu/kernels/attention_call.h"
#include "gpu/kernels/elements.h"

#include <cmath>
#include <cstdint>

// Online softmax and masks of tiles. Exact arithmetic runs in double with the portable exponential, fast in float.
namespace kvscope::gpu {

/// a b + c, rounded once on a device.
KVSCOPE_PORTABLE double multiplyAdd(double a, double b, double c) { return exactMultiplyAdd(a, b, c); }
KVSCOPE_PORTABLE float multiplyAdd(float a, float b, float c) { return exactMultiplyAdd(a, b, c); }

/// The larger number; the other one where one is NaN.
KVSCOPE_PORTABLE double largerOf(double a, double b) { return a > b || b != b ? a : b; }
KVSCOPE_PORTABLE float largerOf(float a, float b) { return fmaxf(a, b); }

KVSCOPE_PORTABLE double softmaxExp(double x) {
#if defined(__CUDA_ARCH__)
    return portableExpOf<double, std::uint64_t>(x, [](double a, double b, double c) { return fma(a, b, c); });
#else
    return portableExp(x);
#endif
}

KVSCOPE_PORTABLE float softmaxExp(float x) {
#if defined(__CUDA_ARCH__)
    return __expf(x);
#else
    return std::exp(x);
#endif
}

/// Logits inside tiles are in this unit: in exact arithmetic natural; in fast arithmetic ln 2, because the device's
/// exponential has base 2.
template <class Number> inline constexpr Number kLogitsPerNat = 1;
template <> inline constexpr float kLogitsPerNat<float> = 1.44269504F; // 1 / ln 2

/// e to the power of x units: softmax weights from logits in tiles.
KVSCOPE_PORTABLE double powerOf(double x) { return softmaxExp(x); }

KVSCOPE_PORTABLE float powerOf(float x) {
#if defined(__CUDACC__) && defined(__CUDA_ARCH__)
    float power;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
    return power;
#else
    return std::exp2(x);
#endif
}

KVSCOPE_PORTABLE double softmaxTanh(double x) { return 1.0 - 2.0 / (softmaxExp(2.0 * x) + 1.0); }

KVSCOPE_PORTABLE float softmaxTanh(float x) { return tanhf(x); }

/// rowSum = sum of e^(l - rowMax) over the logits l so far, rowMax = their maximum. No logit yet: rowMax -infinity,
/// rowSum 0. NaN stays.
template <class Number> struct OnlineSoftmax {
    Number rowMax = -Number(__builtin_inff());
    Number rowSum = 0;

    /// Raises rowMax to `largest`, which may be -infinity, and rescales rowSum.
    KVSCOPE_PORTABLE void updateMax(Number largest) {
        if (largest > rowMax) {
            rowSum = rowSum > 0 || rowSum != rowSum ? rowSum * softmaxExp(rowMax - largest) : 0;
            rowMax = largest;
        }
    }

    /// Adds a logit of at most rowMax; -infinity adds nothing.
    KVSCOPE_PORTABLE void add(Number logit) {
        if (logit != -Number(__builtin_inff())) rowSum += softmaxExp(logit - rowMax);
    }

    KVSCOPE_PORTABLE void merge(const OnlineSoftmax& other) {
        OnlineSoftmax theirs = other;
        updateMax(theirs.rowMax);
        theirs.updateMax(rowMax);
        rowSum += theirs.rowSum;
    }
};

/// Shift and factor of softmax weights: weight = e^(logit - rowMax) * inverseSum.
struct SoftmaxNormaliser {
    double rowMax, inverseSum;
};

/// A query that sees no key has inverseSum 0, and a rowMax for which e^(-infinity - rowMax) is 0.
KVSCOPE_PORTABLE SoftmaxNormaliser normaliserOf(const OnlineSoftmax<double>& sum) {
    return {sum.rowMax == -__builtin_inf() ? 0 : sum.rowMax,
            sum.rowSum > 0 || sum.rowSum != sum.rowSum ? 1 / sum.rowSum : 0};
}

/// Positions of some queries and of some keys, first and last.
struct PositionSpan {
    std::int64_t first, last;
};

/// The chunk of a position. In 32 bits: a division of 64 is a function of a hundred instructions.
KVSCOPE_PORTABLE std::int64_t chunkOf(const AttentionMask& mask, std::int64_t position) {
    return static_cast<std::uint32_t>(position) / static_cast<std::uint32_t>(mask.chunk);
}

KVSCOPE_PORTABLE bool sees(const AttentionMask& mask, std::int64_t query, std::int64_t key) {
    if (mask.kind == MaskKind::All) return true;
    if (mask.kind == MaskKind::Chunks)
        return chunkOf(mask, query) == chunkOf(mask, key) &&
               (mask.slidingWindow == 0 || (key > query - mask.slidingWindow && query > key - mask.slidingWindow));
    return key <= query && (mask.slidingWindow == 0 || key > query - mask.slidingWindow);
}

/// Positions in the chunks of `span` and within the window of it: the relation is symmetric, so it serves queries and
/// keys.
KVSCOPE_PORTABLE PositionSpan aroundInChunks(const AttentionMask& mask, PositionSpan span) {
    const PositionSpan chunks{chunkOf(mask, span.first) * mask.chunk, (chunkOf(mask, span.last) + 1) * mask.chunk - 1};
    if (mask.slidingWindow == 0) return chunks;
    const PositionSpan near{span.first - mask.slidingWindow + 1, span.last + mask.slidingWindow - 1};
    return {near.first > chunks.first ? near.first : chunks.first, near.last < chunks.last ? near.last : chunks.last};
}

/// Positions of the keys that some of the queries may see; may include keys beyond both ends.
KVSCOPE_PORTABLE PositionSpan keysSeenBy(const AttentionMask& mask, PositionSpan queries) {
    if (mask.kind == MaskKind::All) return {0, INT64_MAX};
    if (mask.kind == MaskKind::Chunks) return aroundInChunks(mask, queries);
    return {mask.slidingWindow == 0 ? 0 : queries.first - mask.slidingWindow + 1, queries.last};
}

/// Positions of the queries that may see some of the keys.
KVSCOPE_PORTABLE PositionSpan queriesThatSee(const AttentionMask& mask, PositionSpan keys) {
    if (mask.kind == MaskKind::All) return {0, INT64_MAX};
    if (mask.kind == MaskKind::Chunks) return aroundInChunks(mask, keys);
    return {keys.first, mask.slidingWindow == 0 ? INT64_MAX : keys.last + mask.slidingWindow - 1};
}

/// Whether every query sees every key, so that no mask is needed.
KVSCOPE_PORTABLE bool allSeen(const AttentionMask& mask, PositionSpan queries, PositionSpan keys) {
    return sees(mask, queries.first, keys.first) && sees(mask, queries.first, keys.last) &&
           sees(mask, queries.last, keys.first) && sees(mask, queries.last, keys.last);
}

} // namespace kvscope::gpu
