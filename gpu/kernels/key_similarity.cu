// Key norms, anchors and similarities. Sixteen lanes share a row, as many as the CPU engine has partial sums, so that
// both add the same numbers in the same order. For the same reason an anchor is summed in blocks of 1,024 rows: one
// thread adds one column of a block, row after row, from a tile in shared memory that also gives the norms, so that
// keys are read from memory once; the next tile is loaded meanwhile. Kernels are instantiated for the usual widths,
// whose loops unroll, and for any other.
#include "gpu/kernels/anchor_tile.h"
#include "gpu/kernels/key_similarity.h"

#include "gpu/kernels/lanes.h"

#include <type_traits>

namespace kvscope::gpu {

namespace {

constexpr int kThreads = 256;
constexpr int kRowsPerPass = kThreads / kProductParts;
constexpr int kRowsPerBlock = 4 * kRowsPerPass; // for kernels that read rows once
constexpr std::int64_t kRowsPerSum = 1024;      // the CPU engine's kRowsPerBlock

constexpr std::int64_t piecesOf(std::int64_t count, std::int64_t size) { return (count + size - 1) / size; }

struct RowsCall {
    DeviceRows rows;
    const float* anchors;
    float* out;
    Metric metric;
};

template <class Element> __device__ __forceinline__ const Element* rowOf(const DeviceRows& rows, std::int64_t row) {
    return static_cast<const Element*>(rows.data) + blockIdx.y * rows.headStride + row * rows.width;
}

/// The width of the rows, a compile-time constant where Width is not 0.
template <int Width> __device__ __forceinline__ std::int64_t widthOf(const DeviceRows& rows) {
    return Width > 0 ? Width : rows.width;
}

template <class Element, int Width> __global__ void __launch_bounds__(kThreads) normKernel(RowsCall call) {
    const int lane = threadIdx.x % kProductParts;
    const std::int64_t n = call.rows.rows, d = widthOf<Width>(call.rows),
                       first = std::int64_t{blockIdx.x} * kRowsPerBlock + threadIdx.x / kProductParts;
    for (int pass = 0; pass < kRowsPerBlock; pass += kRowsPerPass) {
        // Lanes without a row read the last row: all lanes of a warp must take part in the shuffles.
        const std::int64_t row = first + pass;
        const Element* x = rowOf<Element>(call.rows, row < n ? row : n - 1);
        const double square = productOfRows(x, x, d, lane);
        if (lane == 0 && row < n) call.out[blockIdx.y * n + row] = static_cast<float>(sqrt(square));
    }
}

/// This lane's elements of an anchor (lane, lane + 16, ...), widened once for all rows where registers allow.
template <int Width> struct AnchorPart {
    double numbers[Width / kProductParts];

    __device__ __forceinline__ AnchorPart(const float* anchor, int lane) {
        for (int i = 0; i < Width / kProductParts; ++i) numbers[i] = double(anchor[lane + i * kProductParts]);
    }
    __device__ __forceinline__ double operator[](std::int64_t i) const { return numbers[i]; }
};
template <> struct AnchorPart<0> {
    const float* numbers;

    __device__ __forceinline__ AnchorPart(const float* anchor, int lane) : numbers(anchor + lane) {}
    __device__ __forceinline__ double operator[](std::int64_t i) const { return double(numbers[i * kProductParts]); }
};

struct DotAndSquare {
    double dot, square;
};

/// <x, anchor> and <x, x>, reading and widening each element once; the sums are those of productOfRows.
template <class Element, int Width>
__device__ __forceinline__ DotAndSquare dotAndSquare(const Element* x, const float* anchor,
                                                     const AnchorPart<Width>& part, std::int64_t d, int lane) {
    DotAndSquare sums{0, 0};
    for (std::int64_t i = 0; i < d / kProductParts; ++i) {
        const double number = double(widened(x[lane + i * kProductParts]));
        sums.dot = exactMultiplyAdd(number, part[i], sums.dot);
        sums.square = exactMultiplyAdd(number, number, sums.square);
    }
    return {sumOfLanes<kProductParts>(sums.dot) + productTail(x, anchor, d),
            sumOfLanes<kProductParts>(sums.square) + productTail(x, x, d)};
}

template <class Element, int Width> __global__ void __launch_bounds__(kThreads) similarityKernel(RowsCall call) {
    const int lane = threadIdx.x % kProductParts;
    const std::int64_t n = call.rows.rows, d = widthOf<Width>(call.rows);
    const std::int64_t first = std::int64_t{blockIdx.x} * kRowsPerBlock + threadIdx.x / kProductParts;
    const float* anchor = call.anchors + blockIdx.y * d;
    const AnchorPart<Width> part(anchor, lane);
    const double anchorSquare = call.metric == Metric::Cosine ? productOfRows(anchor, anchor, d, lane) : 0;
    for (int pass = 0; pass < kRowsPerBlock; pass += kRowsPerPass) {
        const std::int64_t row = first + pass;
        const Element* x = rowOf<Element>(call.rows, row < n ? row : n - 1);
        double result;
        if (call.metric == Metric::Euclidean) {
            result = sqrt(distanceOfRows(x, anchor, d, lane % kDistanceParts)); // both halves compute the same
        } else if (call.metric == Metric::Dot) {
            result = productOfRows(x, anchor, d, lane);
        } else {
            const DotAndSquare sums = dotAndSquare(x, anchor, part, d, lane);
            result = cosineOf(sums.dot, sums.square, anchorSquare);
        }
        if (lane == 0 && row < n) call.out[blockIdx.y * n + row] = static_cast<float>(result);
    }
}

struct AnchorCall {
    DeviceRows rows;
    bool normalised;
    double* partial; ///< [H, pieces, d]
    std::int64_t pieces;
    float* anchor;
    int tileRows; ///< at most kMostAnchorRows
};

/// sums[c] += the tile's elements of column c times the rows' factors, in row order; several elements are loaded before
/// they are added.
template <class Element>
__device__ __forceinline__ void addRows(const Element* tile, const double* factors, bool normalised, int count, int d,
                                        double* sums) {
    constexpr int kAhead = 8;
    const auto numberOf = [&](int row, int c) {
        const double x = double(widened(tile[row * d + c]));
        return normalised ? factors[row] * x : x;
    };
    for (int c = threadIdx.x; c < d; c += kAnchorThreads) {
        double sum = sums[c];
        int row = 0;
        for (; row + kAhead <= count; row += kAhead) {
            double numbers[kAhead];
            for (int k = 0; k < kAhead; ++k) numbers[k] = numberOf(row + k, c);
            for (int k = 0; k < kAhead; ++k) sum += numbers[k];
        }
        for (; row < count; ++row) sum += numberOf(row, c);
        sums[c] = sum;
    }
}

template <class Element, int Width> __global__ void __launch_bounds__(kAnchorThreads) anchorKernel(AnchorCall call) {
    const int d = static_cast<int>(widthOf<Width>(call.rows)), lane = threadIdx.x % kProductParts;
    AnchorShared<Element> s(&sharedAs<double>(), d);
    const std::int64_t n = call.rows.rows, begin = blockIdx.x * kRowsPerSum,
                       end = begin + kRowsPerSum < n ? begin + kRowsPerSum : n;
    const auto countAt = [&](std::int64_t first) {
        return first >= end ? 0 : static_cast<int>(end - first < call.tileRows ? end - first : call.tileRows);
    };
    for (int c = threadIdx.x; c < d; c += kAnchorThreads) s.sums[c] = 0;
    TileAhead<Element> ahead;
    ahead.fetch(rowOf<Element>(call.rows, begin), countAt(begin) * d);
    for (std::int64_t first = begin; first < end; first += call.tileRows) {
        const int count = countAt(first);
        ahead.store(s.tile);
        __syncthreads();
        ahead.fetch(rowOf<Element>(call.rows, first + count), countAt(first + count) * d);
        for (int pass = 0; call.normalised && pass < count; pass += kAnchorThreads / kProductParts) {
            const int row = pass + threadIdx.x / kProductParts;
            const Element* x = s.tile + (row < count ? row : 0) * d;
            const double square = productOfRows(x, x, d, lane);
            if (lane == 0 && row < count) s.factors[row] = inverseLength(square);
        }
        __syncthreads();
        addRows(s.tile, s.factors, call.normalised, count, d, s.sums);
        __syncthreads();
    }
    for (int c = threadIdx.x; c < d; c += kAnchorThreads)
        call.partial[(blockIdx.y * call.pieces + blockIdx.x) * d + c] = s.sums[c];
}

/// Adds the partial sums in the order of the pieces, with several loads in flight.
__global__ void __launch_bounds__(kThreads) finishAnchorKernel(AnchorCall call) {
    constexpr int kAhead = 16;
    const std::int64_t d = call.rows.width, c = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
    if (c >= d) return;
    const double* partial = call.partial + blockIdx.y * call.pieces * d + c;
    double sum = 0;
    for (std::int64_t first = 0; first < call.pieces; first += kAhead) {
        double numbers[kAhead];
        for (int k = 0; k < kAhead; ++k) numbers[k] = first + k < call.pieces ? partial[(first + k) * d] : 0;
        for (int k = 0; k < kAhead; ++k) sum += numbers[k];
    }
    call.anchor[blockIdx.y * d + c] = static_cast<float>(sum / static_cast<double>(call.rows.rows));
}

/// Calls work(Element{}, width) with the rows' element type and, for the usual widths, a constant width; 0: any other.
template <class Work> void withElementAndWidth(const DeviceRows& rows, const Work& work) {
    withElement(rows.type, [&](auto element) {
        if (rows.width == 128)
            work(element, std::integral_constant<int, 128>{});
        else if (rows.width == 64)
            work(element, std::integral_constant<int, 64>{});
        else
            work(element, std::integral_constant<int, 0>{});
    });
}

Grid rowGrid(const DeviceRows& rows) { return {rows.rows > 0 ? piecesOf(rows.rows, kRowsPerBlock) : 0, rows.heads}; }

} // namespace

void rowNorms(const DeviceRows& rows, float* norms, Stream stream) {
    withElementAndWidth(rows, [&](auto element, auto width) {
        launch("key norms", normKernel<decltype(element), width()>, rowGrid(rows), kThreads, 0, stream,
               RowsCall{rows, nullptr, norms, Metric::Dot});
    });
}

void similarity(const DeviceRows& rows, const float* anchors, Metric metric, float* similarities, Stream stream) {
    withElementAndWidth(rows, [&](auto element, auto width) {
        launch("similarity to an anchor", similarityKernel<decltype(element), width()>, rowGrid(rows), kThreads, 0,
               stream, RowsCall{rows, anchors, similarities, metric});
    });
}

std::size_t anchorScratchBytes(const DeviceRows& rows) {
    return static_cast<std::size_t>(rows.heads * piecesOf(rows.rows, kRowsPerSum) * rows.width) * sizeof(double);
}

void meanAnchor(const DeviceRows& rows, bool normalised, void* scratch, float* anchor, Stream stream) {
    const std::int64_t pieces = piecesOf(rows.rows, kRowsPerSum);
    const AnchorCall call{rows, normalised, static_cast<double*>(scratch), pieces, anchor, anchorRowsFor(rows)};
    withElementAndWidth(rows, [&](auto element, auto width) {
        launch("anchor sums", anchorKernel<decltype(element), width()>, {pieces, rows.heads}, kAnchorThreads,
               anchorSharedBytes(rows, call.tileRows), stream, call);
    });
    launch("anchor", finishAnchorKernel, {piecesOf(rows.width, kThreads), rows.heads}, kThreads, 0, stream, call);
}

} // namespace kvscope::gpu
