#pragma once

#include "gpu/kernels/logit_tile.h"

#include <type_traits>

// Tiles of logits on tensor cores, for 16-bit rows in fast arithmetic: exact products, float sums.
namespace kvscope::gpu {

#if defined(__CUDACC__)

/// c += a b for 16 x 16 a and 16 x 8 b of 16-bit elements, distributed over the lanes of a warp as the PTX manual
/// defines mma.m16n8k16: lane = 4 g + t holds the pairs (g, 2t), (g + 8, 2t), (g, 2t + 8), (g + 8, 2t + 8) of a, the
/// pairs (2t, g), (2t + 8, g) of b and the elements (g, 2t), (g, 2t + 1), (g + 8, 2t), (g + 8, 2t + 1) of c.
template <class Element>
__device__ __forceinline__ void multiplyFragments(float (&c)[4], const std::uint32_t (&a)[4],
                                                  const std::uint32_t (&b)[2]) {
    if constexpr (std::is_same_v<Element, BFloat16>)
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
                     "{%0,%1,%2,%3};"
                     : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    else
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
                     "{%0,%1,%2,%3};"
                     : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

#endif

/// Eight warps of 16 rows by 32 keys; a thread has 2 rows by 8 keys.
template <class Element> struct TensorTile {
    using Value = float;
    static constexpr int kDepth = 128, kPad = 8; ///< the pad puts the lanes of a fragment into different banks
    static constexpr int kRowsPerThread = 2;
    static constexpr int kParts = 8;
    static constexpr int kBlocks = 3;
    static constexpr bool kKeepsOperands = true; ///< an operand no wider than kDepth may stay for the next tile

    struct Shared {
        alignas(16) std::uint16_t rows[kTile][kDepth + kPad];
        alignas(16) std::uint16_t keys[kTile][kDepth + kPad];
    };

    static __device__ __forceinline__ int lane() { return threadIdx.x % kWarp; }
    static __device__ __forceinline__ int warp() { return threadIdx.x / kWarp; }
    static __device__ __forceinline__ int rowSlot(int value) { return value % 4 / 2; }
    static __device__ __forceinline__ int rowOf(int value) { return warp() % 4 * 16 + lane() / 4 + rowSlot(value) * 8; }
    static __device__ __forceinline__ int keyOf(int value) {
        return warp() / 4 * 32 + value / 4 * 8 + lane() % 4 * 2 + value % 2;
    }
    static __device__ __forceinline__ int part() { return warp() / 4 * 4 + lane() % 4; }

    // Loads two or eight elements at once.
    typedef std::uint32_t __attribute__((may_alias)) Pair;
    struct __attribute__((may_alias)) Eight {
        alignas(16) std::uint32_t words[4];
    };

    static __device__ __forceinline__ void fill(std::uint16_t (&to)[kTile][kDepth + kPad], const TileRows& from,
                                                std::int64_t depth) {
        constexpr int kEights = kDepth / 8;
        const auto* data = static_cast<const std::uint16_t*>(from.data);
        for (int i = threadIdx.x; i < kTile * kEights; i += kTileThreads) {
            const int row = i / kEights, c = i % kEights * 8;
            const std::int64_t left = from.offsets[row] < 0 ? 0 : from.width - depth - c;
            const std::uint16_t* source = data + (left > 0 ? from.offsets[row] + depth + c : 0);
            if (left >= 8 && reinterpret_cast<std::uintptr_t>(source) % 16 == 0) {
                *reinterpret_cast<Eight*>(&to[row][c]) = *reinterpret_cast<const Eight*>(source);
                continue;
            }
            for (int k = 0; k < 8; ++k) to[row][c + k] = k < left ? source[k] : 0;
        }
    }

    static __device__ __forceinline__ std::uint32_t pair(const std::uint16_t* at) {
        return *reinterpret_cast<const Pair*>(at);
    }

    static __device__ __forceinline__ void multiply(Shared& s, const TileRows& rows, const TileRows& keys,
                                                    bool rowsStay, bool keysStay, float (&values)[kTileValues]) {
        for (float& value : values) value = 0;
        const bool whole = rows.width <= kDepth;
        for (std::int64_t depth = 0; depth < rows.width; depth += kDepth) {
            __syncthreads();
            if (!whole || !rowsStay) fill(s.rows, rows, depth);
            if (!whole || !keysStay) fill(s.keys, keys, depth);
            __syncthreads();
            addProducts<kDepth>(s, rows.width - depth < kDepth ? rows.width - depth : kDepth, values);
        }
    }

    /// As PlainTile's, for bfloat16. A weight is the sum of three bfloat16, so all 24 bits of it count: two of them lie
    /// kTile apart in the row, the third one takes a second product.
    static __device__ __forceinline__ void addWeighted(Shared& s, const float* weights, int stride,
                                                       const TileRows& from, std::int64_t column,
                                                       float (&sums)[kTileValues]) {
        static_assert(std::is_same_v<Element, BFloat16> && kDepth == 2 * kTile);
        const auto upperHalf = [](float x) { return std::uint16_t(__builtin_bit_cast(std::uint32_t, x) >> 16); };
        const auto* data = static_cast<const std::uint16_t*>(from.data);
        for (int part = 0; part < 2; ++part) {
            __syncthreads();
            for (int i = threadIdx.x; i < kTile * kTile; i += kTileThreads) {
                const int first = i / kTile, second = i % kTile; // row and key, then key and column
                const float weight = weights[first * stride + second];
                const std::uint16_t upper = upperHalf(weight);
                const float rest = weight - widened(BFloat16{upper});
                const std::uint16_t middle = upperHalf(rest);
                s.rows[first][second] = part == 0 ? upper : upperHalf(rest - widened(BFloat16{middle}));
                if (part != 0) continue;
                s.rows[first][kTile + second] = middle;
                const bool there = from.offsets[first] >= 0 && column + second < from.width;
                s.keys[second][first] = there ? data[from.offsets[first] + column + second] : 0;
            }
            __syncthreads();
            addProducts<kTile>(s, part == 0 ? kDepth : kTile, sums);
        }
    }

    /// values += rows times keys, over `depth` elements; those of the keys begin again after Period.
    template <int Period>
    static __device__ __forceinline__ void addProducts(const Shared& s, std::int64_t depth,
                                                       float (&values)[kTileValues]) {
        float sums[4][4];
        for (int v = 0; v < kTileValues; ++v) sums[v / 4][v % 4] = values[v];
        const int group = lane() / 4, two = lane() % 4 * 2, row = warp() % 4 * 16 + group,
                  key = warp() / 4 * 32 + group;
        for (int c = 0; c < depth; c += 16) {
            const std::uint32_t a[4] = {pair(&s.rows[row][c + two]), pair(&s.rows[row + 8][c + two]),
                                        pair(&s.rows[row][c + two + 8]), pair(&s.rows[row + 8][c + two + 8])};
            for (int n = 0; n < 4; ++n) {
                const auto* keys = &s.keys[key + n * 8][c % Period + two];
                const std::uint32_t b[2] = {pair(keys), pair(keys + 8)};
                multiplyFragments<Element>(sums[n], a, b);
            }
        }
        for (int v = 0; v < kTileValues; ++v) values[v] = sums[v / 4][v % 4];
    }
};

/// Calls work with the tile type for float sums over rows of this type.
template <class Work> void withFastTile(ElementType type, const Work& work) {
    if (type == ElementType::BFloat16)
        work(TensorTile<BFloat16>{});
    else if (type == ElementType::Float16)
        work(TensorTile<Float16>{});
    else
        work(PlainTile<float>{});
}

} // namespace kvscope::gpu
