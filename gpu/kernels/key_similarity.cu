// Key norms, anchors and similarities. Sixteen lanes share a row, as many as the CPU engine has partial sums, so that
// both add the same numbers in the same order. The anchor's column sums are made in blocks of 1,024 rows for the same
// reason: one thread adds one column of a block, row after row, from a tile in shared memory that also gives the
// lengths, so that the keys are read from memory once.
#include "gpu/kernels/key_similarity.h"

#include "gpu/kernels/lanes.h"

namespace kvscope::gpu {

namespace {

constexpr int kThreads = 256;
constexpr int kRowsPerPass = kThreads / kProductParts;
constexpr int kRowsPerBlock = 4 * kRowsPerPass; // of the kernels that read rows once
constexpr std::int64_t kRowsPerSum = 1024;      // the CPU engine's kRowsPerBlock
constexpr int kMostTileRows = 64;
constexpr std::size_t kTileBytes = 48 * 1024; // what every device gives a block without being asked for more

constexpr std::int64_t piecesOf(std::int64_t count, std::int64_t size) {
    return (count + size - 1) / size;
}

struct RowsCall {
    DeviceRows rows;
    const float* anchors;
    float* out;
    Metric metric;
};

template <class Element> __device__ __forceinline__ const Element* rowOf(const DeviceRows& rows, std::int64_t row) {
    return static_cast<const Element*>(rows.data) + blockIdx.y * rows.headStride + row * rows.width;
}

template <class Element> __global__ void __launch_bounds__(kThreads) normKernel(RowsCall call) {
    const int lane = threadIdx.x % kProductParts;
    const std::int64_t n = call.rows.rows,
                       first = std::int64_t{blockIdx.x} * kRowsPerBlock + threadIdx.x / kProductParts;
    for (int pass = 0; pass < kRowsPerBlock; pass += kRowsPerPass) {
        // Lanes without a row read the last one again: all lanes of a warp must come to the shuffles.
        const std::int64_t row = first + pass;
        const Element* x = rowOf<Element>(call.rows, row < n ? row : n - 1);
        const double square = productOfRows(x, x, call.rows.width, lane);
        if (lane == 0 && row < n)
            call.out[blockIdx.y * n + row] = static_cast<float>(sqrt(square));
    }
}

template <class Element> __global__ void __launch_bounds__(kThreads) similarityKernel(RowsCall call) {
    const int lane = threadIdx.x % kProductParts;
    const std::int64_t n = call.rows.rows, d = call.rows.width;
    const std::int64_t first = std::int64_t{blockIdx.x} * kRowsPerBlock + threadIdx.x / kProductParts;
    const float* anchor = call.anchors + blockIdx.y * d;
    const double anchorSquare = call.metric == Metric::Cosine ? productOfRows(anchor, anchor, d, lane) : 0;
    for (int pass = 0; pass < kRowsPerBlock; pass += kRowsPerPass) {
        const std::int64_t row = first + pass;
        const Element* x = rowOf<Element>(call.rows, row < n ? row : n - 1);
        double result;
        if (call.metric == Metric::Euclidean)
            result = sqrt(distanceOfRows(x, anchor, d, lane % kDistanceParts)); // both halves do the same
        else
            result = productOfRows(x, anchor, d, lane);
        if (call.metric == Metric::Cosine)
            result = cosineOf(result, productOfRows(x, x, d, lane), anchorSquare);
        if (lane == 0 && row < n)
            call.out[blockIdx.y * n + row] = static_cast<float>(result);
    }
}

struct AnchorCall {
    DeviceRows rows;
    bool normalised;
    double* partial; ///< [H, pieces, d]
    std::int64_t pieces;
    float* anchor;
    int tileRows; ///< at most kMostTileRows
};

/// Shared memory of anchorKernel: sums [d] and factors in double, then the tile [tileRows, d] in float.
constexpr std::size_t anchorShared(std::int64_t width, int tileRows) {
    return static_cast<std::size_t>((width + kMostTileRows) * 8 + tileRows * width * 4);
}

/// Wide rows leave room for fewer: whole passes where they fit. The sums do not depend on it.
constexpr int tileRowsFor(std::int64_t width) {
    int rows = kMostTileRows;
    while (rows > 1 && anchorShared(width, rows) > kTileBytes)
        rows -= rows > kRowsPerPass ? kRowsPerPass : 1;
    return rows;
}

template <class Element> __global__ void __launch_bounds__(kThreads) anchorKernel(AnchorCall call) {
    const std::int64_t n = call.rows.rows, d = call.rows.width;
    double* sums = &sharedAs<double>();
    double* factors = sums + d;
    float* tile = reinterpret_cast<float*>(factors + kMostTileRows);
    const std::int64_t begin = blockIdx.x * kRowsPerSum, end = begin + kRowsPerSum < n ? begin + kRowsPerSum : n;
    for (std::int64_t c = threadIdx.x; c < d; c += kThreads)
        sums[c] = 0;
    for (std::int64_t first = begin; first < end; first += call.tileRows) {
        const int count = static_cast<int>(end - first < call.tileRows ? end - first : call.tileRows);
        const Element* rows = rowOf<Element>(call.rows, first);
        for (std::int64_t i = threadIdx.x; i < count * d; i += kThreads)
            tile[i] = widened(rows[i]);
        __syncthreads();
        for (int pass = 0; call.normalised && pass < call.tileRows; pass += kRowsPerPass) {
            const int row = pass + threadIdx.x / kProductParts;
            const float* x = tile + (row < count ? row : 0) * d;
            const double square = productOfRows(x, x, d, threadIdx.x % kProductParts);
            if (threadIdx.x % kProductParts == 0)
                factors[row] = inverseLength(square);
        }
        __syncthreads();
        for (std::int64_t c = threadIdx.x; c < d; c += kThreads) {
            double sum = sums[c];
            for (int row = 0; row < count; ++row)
                sum += call.normalised ? factors[row] * double(tile[row * d + c]) : double(tile[row * d + c]);
            sums[c] = sum;
        }
        __syncthreads();
    }
    for (std::int64_t c = threadIdx.x; c < d; c += kThreads)
        call.partial[(blockIdx.y * call.pieces + blockIdx.x) * d + c] = sums[c];
}

/// Adds the partial sums in the order of the pieces.
__global__ void __launch_bounds__(kThreads) finishAnchorKernel(AnchorCall call) {
    const std::int64_t d = call.rows.width, c = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
    if (c >= d)
        return;
    double sum = 0;
    for (std::int64_t piece = 0; piece < call.pieces; ++piece)
        sum += call.partial[(blockIdx.y * call.pieces + piece) * d + c];
    call.anchor[blockIdx.y * d + c] = static_cast<float>(sum / static_cast<double>(call.rows.rows));
}

Grid rowGrid(const DeviceRows& rows) {
    return {rows.rows > 0 ? piecesOf(rows.rows, kRowsPerBlock) : 0, rows.heads};
}

} // namespace

void rowNorms(const DeviceRows& rows, float* norms, Stream stream) {
    withElement(rows.type, [&](auto element) {
        launch("key norms", normKernel<decltype(element)>, rowGrid(rows), kThreads, 0, stream,
               RowsCall{rows, nullptr, norms, Metric::Dot});
    });
}

void similarity(const DeviceRows& rows, const float* anchors, Metric metric, float* similarities, Stream stream) {
    withElement(rows.type, [&](auto element) {
        launch("similarity to an anchor", similarityKernel<decltype(element)>, rowGrid(rows), kThreads, 0, stream,
               RowsCall{rows, anchors, similarities, metric});
    });
}

std::size_t anchorScratchBytes(const DeviceRows& rows) {
    return static_cast<std::size_t>(rows.heads * piecesOf(rows.rows, kRowsPerSum) * rows.width) * sizeof(double);
}

void meanAnchor(const DeviceRows& rows, bool normalised, void* scratch, float* anchor, Stream stream) {
    const std::int64_t pieces = piecesOf(rows.rows, kRowsPerSum);
    const AnchorCall call{rows, normalised, static_cast<double*>(scratch), pieces, anchor, tileRowsFor(rows.width)};
    withElement(rows.type, [&](auto element) {
        launch("anchor sums", anchorKernel<decltype(element)>, {pieces, rows.heads}, kThreads,
               anchorShared(rows.width, call.tileRows), stream, call);
    });
    launch("anchor", finishAnchorKernel, {piecesOf(rows.width, kThreads), rows.heads}, kThreads, 0, stream, call);
}

void anchorSimilarity(const DeviceRows& rows, bool normalised, Metric metric, void* scratch, float* anchor,
                      float* similarities, Stream stream) {
    meanAnchor(rows, normalised, scratch, anchor, stream);
    similarity(rows, anchor, metric, similarities, stream);
}

} // namespace kvscope::gpu
