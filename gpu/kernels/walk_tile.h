#pragma once

#include "gpu/kernels/tensor_cores.h"
#include "gpu/kernels/walk_lanes.h"

#include <type_traits>

// Products of 64 rows of a walk (the panel) with 32 rows that step together (the lanes), on tensor cores: of doubles
// when exact, where every sum is added element by element and so has the CPU engine's bits; of 16-bit elements when
// fast. A warp has 16 panel rows by 32 lanes.
namespace kvscope::gpu {

inline constexpr int kWalkThreads = 128;
inline constexpr int kPanel = 64;
inline constexpr int kWarpRows = kPanel / (kWalkThreads / kWarp);
inline constexpr int kWalkValues = kPanel * kWarp / kWalkThreads; ///< products per thread

/// Sixteen bytes of a row.
template <class Element> struct __attribute__((may_alias)) Several {
    static constexpr int kCount = 16 / static_cast<int>(sizeof(Element));
    alignas(16) Element items[kCount];
};

/// A slice of a row in shared memory; the last 16 of the 272 bytes put the lanes of a fragment into different banks.
template <class Element> struct alignas(16) WalkSlice {
    static constexpr int kDepth = 256 / static_cast<int>(sizeof(Element));
    Element items[kDepth + Several<Element>::kCount];
};

/// The panel row and the lane of a thread's product.
__device__ __forceinline__ int panelRowOf(int value) {
    return threadIdx.x / kWarp * kWarpRows + value % 4 / 2 * 8 + threadIdx.x % kWarp / 4;
}

__device__ __forceinline__ int laneOf(int value) { return value / 4 * 8 + threadIdx.x % 4 * 2 + value % 2; }

/// The rows of the walk's head.
struct WalkRows {
    DeviceRows rows;   ///< data is the head's first row
    bool isInSixteens; ///< every row begins at a multiple of 16 bytes and has whole ones
};

template <class Element> __device__ __forceinline__ WalkRows rowsOfWalk(const DeviceRows& all, const Walk& walk) {
    constexpr int kCount = Several<Element>::kCount;
    WalkRows head{all, false};
    const std::int64_t begin = walk.rule.head * all.headStride;
    head.rows.data = static_cast<const unsigned char*>(all.data) + begin * (all.type == ElementType::Float32 ? 4 : 2);
    head.isInSixteens = (all.type == ElementType::Float32) == std::is_same_v<Element, float> &&
                        all.width % kCount == 0 && reinterpret_cast<std::uintptr_t>(head.rows.data) % 16 == 0;
    return head;
}

/// Elements [depth, depth + kDepth) of Rows rows of the walk from `first` on; zero where there is none. The elements
/// are there after waitForCopies and a barrier.
template <int Rows, class Element>
__device__ __forceinline__ void fillSlices(WalkSlice<Element>* to, const WalkRows& from, const Walk& walk, int first,
                                           int depth) {
    constexpr int kDepth = WalkSlice<Element>::kDepth, kCount = Several<Element>::kCount;
    constexpr int kParts = kDepth / kCount, kRowsAtOnce = kWalkThreads / kParts, kLoads = Rows / kRowsAtOnce;
    const int width = static_cast<int>(from.rows.width);
    if (from.isInSixteens) {
        const int row = threadIdx.x / kParts, c = threadIdx.x % kParts * kCount;
        const auto* data = static_cast<const Element*>(from.rows.data) + depth + c;
        KVSCOPE_UNROLL for (int k = 0; k < kLoads; ++k) {
            const int place = first + row + k * kRowsAtOnce;
            Element* at = &to[row + k * kRowsAtOnce].items[c];
            if (place < walk.count && depth + c < width)
                copySixteen(at, data + std::int64_t{walk.rows[place]} * width);
            else
                *reinterpret_cast<Several<Element>*>(at) = {};
        }
        return;
    }
    for (int i = threadIdx.x; i < Rows * kDepth; i += kWalkThreads) {
        const int row = i / kDepth, c = i % kDepth;
        Element element{};
        if (first + row < walk.count && depth + c < width) {
            const std::int64_t at = std::int64_t{walk.rows[first + row]} * width + depth + c;
            if constexpr (std::is_same_v<Element, float>) // of any type
                element = elementAt(from.rows.data, from.rows.type, at);
            else
                element = static_cast<const Element*>(from.rows.data)[at];
        }
        to[row].items[c] = element;
    }
}

/// sums += products of this warp's panel rows with the lanes, over `depth` elements; behind them the slices are zero.
template <class Element>
__device__ __forceinline__ void addProducts(const WalkSlice<Element>* panel, const WalkSlice<Element>* lanes, int depth,
                                            double (&sums)[kWalkValues]) {
    const int group = threadIdx.x % kWarp / 4, t = threadIdx.x % 4, row = panelRowOf(0);
    double products[kWalkValues / 2][2];
    KVSCOPE_UNROLL for (int v = 0; v < kWalkValues; ++v) products[v / 2][v % 2] = sums[v];
    for (int c = 0; c < depth; c += 4) {
        const double a[2] = {widened(panel[row].items[c + t]), widened(panel[row + 8].items[c + t])};
        KVSCOPE_UNROLL for (int n = 0; n < 4; ++n) {
            const double b = widened(lanes[n * 8 + group].items[c + t]);
            multiplyDoubles(products[n * 2], a[0], b);
            multiplyDoubles(products[n * 2 + 1], a[1], b);
        }
    }
    KVSCOPE_UNROLL for (int v = 0; v < kWalkValues; ++v) sums[v] = products[v / 2][v % 2];
}

template <class Element>
__device__ __forceinline__ void addProducts(const WalkSlice<Element>* panel, const WalkSlice<Element>* lanes, int depth,
                                            float (&sums)[kWalkValues]) {
    typedef std::uint32_t __attribute__((may_alias)) Pair;
    const auto pair = [](const Element* first) { return *reinterpret_cast<const Pair*>(first); };
    const int group = threadIdx.x % kWarp / 4, two = threadIdx.x % 4 * 2, row = panelRowOf(0);
    float products[kWalkValues / 4][4];
    KVSCOPE_UNROLL for (int v = 0; v < kWalkValues; ++v) products[v / 4][v % 4] = sums[v];
    for (int c = 0; c < depth; c += 16) {
        const Element *upper = &panel[row].items[c + two], *lower = &panel[row + 8].items[c + two];
        const std::uint32_t a[4] = {pair(upper), pair(lower), pair(upper + 8), pair(lower + 8)};
        KVSCOPE_UNROLL for (int n = 0; n < 4; ++n) {
            const Element* lane = &lanes[n * 8 + group].items[c + two];
            const std::uint32_t b[2] = {pair(lane), pair(lane + 8)};
            multiplyFragments<Element>(products[n], a, b);
        }
    }
    KVSCOPE_UNROLL for (int v = 0; v < kWalkValues; ++v) sums[v] = products[v / 4][v % 4];
}

/// Tensor cores round floats, so these are multiplied one by one.
__device__ __forceinline__ void addProducts(const WalkSlice<float>* panel, const WalkSlice<float>* lanes, int depth,
                                            float (&sums)[kWalkValues]) {
    constexpr int kCount = Several<float>::kCount;
    const auto several = [](const WalkSlice<float>& slice, int c) {
        return *reinterpret_cast<const Several<float>*>(&slice.items[c]);
    };
    for (int c = 0; c < depth; c += kCount) {
        const Several<float> a[2] = {several(panel[panelRowOf(0)], c), several(panel[panelRowOf(2)], c)};
        KVSCOPE_UNROLL for (int n = 0; n < kWalkValues / 2; ++n) {
            const int upper = n / 2 * 4 + n % 2, lower = upper + 2; // of the same lane
            const Several<float> b = several(lanes[laneOf(upper)], c);
            KVSCOPE_UNROLL for (int k = 0; k < kCount; ++k) {
                sums[upper] = exactMultiplyAdd(a[0].items[k], b.items[k], sums[upper]);
                sums[lower] = exactMultiplyAdd(a[1].items[k], b.items[k], sums[lower]);
            }
        }
    }
}

/// Calls work(Element{}) with the type that the rows of both have in shared memory: float stands for any.
template <class Work> void withWalkElement(const WalksCall& call, const Work& work) {
    const bool sameType = !call.values.data || call.values.type == call.keys.type;
    withElement(sameType ? call.keys.type : ElementType::Float32, work);
}

} // namespace kvscope::gpu
