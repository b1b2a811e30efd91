// Key norms, anchors and similarities: rows pass through the registers of warps (row_batch.h), sums run in double. An
// anchor is summed in blocks of rows: every lane adds its eight columns of its rows, the groups of lanes are added in
// shared memory in a fixed order, and a second kernel adds the blocks in a fixed order, whatever order they ran in.
// Kernels are instantiated for the usual widths, whose rows stay in registers, and for any other.
#include "gpu/kernels/key_similarity.h"

#include "gpu/kernels/lanes.h"
#include "gpu/kernels/row_batch.h"

#include <type_traits>

namespace kvscope::gpu {

namespace {

constexpr int kThreads = 128, kWarps = kThreads / kWarp;
constexpr int kAnchorBlocks = 4, kSimilarityBlocks = 5; // on a multiprocessor: 128 and 96 registers
/// Rows of a block, for an anchor's partial sum and for similarities: 16,384 keys of 8 heads make 512 blocks, which fit
/// on an H100 (132 multiprocessors) at once. Norms need fewer registers.
constexpr std::int64_t kRowsPerBlock = 256, kRowsOfNorms = 128;

constexpr std::int64_t piecesOf(std::int64_t count, std::int64_t size) { return (count + size - 1) / size; }

struct RowsCall {
    DeviceRows rows;
    bool isStraight;
    const float* anchors;
    float* out;
    Metric metric;
};

__device__ __forceinline__ std::int64_t endOfBlock(const DeviceRows& rows, std::int64_t begin,
                                                   std::int64_t most = kRowsPerBlock) {
    return begin + most < rows.rows ? begin + most : rows.rows;
}

/// sums[r] += the squares of the piece of row r.
template <class Batch, int Rows> __device__ __forceinline__ void addSquares(const Batch& batch, double (&sums)[Rows]) {
    KVSCOPE_UNROLL
    for (int r = 0; r < Rows; ++r) {
        KVSCOPE_UNROLL
        for (int i = 0; i < kPiece; ++i) {
            const double x = batch.pieces[r][i];
            sums[r] = exactMultiplyAdd(x, x, sums[r]);
        }
    }
}

template <int Count> __device__ __forceinline__ void clear(double (&numbers)[Count]) {
    KVSCOPE_UNROLL
    for (int i = 0; i < Count; ++i) numbers[i] = 0;
}

/// Writes a number per row, where the lanes have it after sumOfEach.
template <class Element, int Width>
__device__ __forceinline__ void writeOfRow(const RowsCall& call, std::int64_t head, std::int64_t first, double number) {
    using Reader = RowReader<Element, Width>;
    constexpr int kLanesOfSum = Reader::Split::kLanesOfSum;
    const std::int64_t row = Reader::rowOf(first, Reader::lane() / kLanesOfSum);
    if (Reader::lane() % kLanesOfSum == 0 && row < call.rows.rows)
        call.out[head * call.rows.rows + row] = static_cast<float>(number);
}

template <class Element, int Width> __global__ void __launch_bounds__(kThreads) normKernel(RowsCall call) {
    using Split = RowSplit<Element, Width>;
    const std::int64_t begin = blockIdx.x * kRowsOfNorms, end = endOfBlock(call.rows, begin, kRowsOfNorms);
    const RowReader<Element, Width> reader(call.rows, blockIdx.y, end, call.isStraight);
    double squares[Split::kRows] = {};
    reader.each(
        begin, kWarps, [&](const auto& batch, std::int64_t) { addSquares(batch, squares); },
        [&](const auto&, std::int64_t first) {
            const double square = sumOfEach<Split::kLanes>(squares, reader.lane());
            writeOfRow<Element, Width>(call, blockIdx.y, first, sqrt(square));
            clear(squares);
        });
}

/// This lane's eight numbers of an anchor; 0 beyond its end.
__device__ __forceinline__ void readAnchor(const float* anchor, std::int64_t column, std::int64_t width,
                                           double (&numbers)[kPiece]) {
    KVSCOPE_UNROLL
    for (int i = 0; i < kPiece; ++i) numbers[i] = column + i < width ? double(anchor[column + i]) : 0;
}

/// Norm of an anchor; every lane of a group gets it.
template <int Lanes> __device__ __forceinline__ double anchorNorm(const float* anchor, std::int64_t width, int lane) {
    double square = 0;
    for (std::int64_t first = 0; first < width; first += Lanes * kPiece) {
        double numbers[kPiece];
        readAnchor(anchor, first + lane * kPiece, width, numbers);
        KVSCOPE_UNROLL
        for (int i = 0; i < kPiece; ++i) square = exactMultiplyAdd(numbers[i], numbers[i], square);
    }
    return sqrt(sumOfLanes<Lanes>(square));
}

/// Products with the anchor and squares of several rows, or squared distances from it in place of the products.
template <int Rows> struct AnchorSums {
    double products[Rows], squares[Rows];

    template <class Batch>
    __device__ __forceinline__ void addProducts(const Batch& batch, const double (&anchor)[kPiece]) {
        KVSCOPE_UNROLL
        for (int r = 0; r < Rows; ++r) {
            KVSCOPE_UNROLL
            for (int i = 0; i < kPiece; ++i) {
                const double x = batch.pieces[r][i];
                products[r] = exactMultiplyAdd(x, anchor[i], products[r]);
                squares[r] = exactMultiplyAdd(x, x, squares[r]);
            }
        }
    }
    template <class Batch>
    __device__ __forceinline__ void addDistances(const Batch& batch, const double (&anchor)[kPiece]) {
        KVSCOPE_UNROLL
        for (int r = 0; r < Rows; ++r) {
            KVSCOPE_UNROLL
            for (int i = 0; i < kPiece; ++i) {
                const double difference = batch.pieces[r][i] - anchor[i];
                products[r] += difference * difference;
            }
        }
    }
};

/// Blocks run from the last row to the first: after meanAnchor the last rows lie in the cache.
template <class Element, int Width>
__global__ void __launch_bounds__(kThreads, kSimilarityBlocks) similarityKernel(RowsCall call) {
    using Split = RowSplit<Element, Width>;
    const std::int64_t head = gridDim.y - 1 - blockIdx.y, begin = (gridDim.x - 1 - blockIdx.x) * kRowsPerBlock,
                       d = Width > 0 ? Width : call.rows.width;
    const RowReader<Element, Width> reader(call.rows, head, endOfBlock(call.rows, begin), call.isStraight);
    const int lane = reader.lane();
    const float* anchor = call.anchors + head * d;
    waitForWorkBefore();
    const double norm = anchorNorm<Split::kLanes>(anchor, d, lane);
    double numbers[kPiece];
    if (Width > 0) readAnchor(anchor, lane * kPiece, d, numbers);
    AnchorSums<Split::kRows> sums{};
    reader.each(
        begin, kWarps,
        [&](const auto& batch, std::int64_t turn) {
            if (Width == 0) readAnchor(anchor, turn * Split::kColumns + lane * kPiece, d, numbers);
            if (call.metric == Metric::Euclidean)
                sums.addDistances(batch, numbers);
            else
                sums.addProducts(batch, numbers);
        },
        [&](const auto&, std::int64_t first) {
            const double product = sumOfEach<Split::kLanes>(sums.products, lane);
            double result = product;
            if (call.metric == Metric::Euclidean) result = sqrt(product);
            if (call.metric == Metric::Cosine)
                result = cosineOf(product, sqrt(sumOfEach<Split::kLanes>(sums.squares, lane)), norm);
            writeOfRow<Element, Width>(call, head, first, result);
            sums = {};
        });
}

struct AnchorCall {
    DeviceRows rows;
    bool isStraight, normalised;
    double* partial; ///< [H, pieces, d]
    std::int64_t pieces, turns;
    float* anchor;
};

/// sums[i] += column i of the rows times the rows' factors, which the lanes have after sumOfEach.
template <class Split, class Batch>
__device__ __forceinline__ void addRows(const Batch& batch, double factor, double (&sums)[kPiece]) {
    const int firstLane = static_cast<int>(threadIdx.x) % kWarp / Split::kLanes * Split::kLanes;
    KVSCOPE_UNROLL
    for (int r = 0; r < Split::kRows; ++r) {
        const double ofRow = __shfl_sync(kAllLanes, factor, firstLane + r * Split::kLanesOfSum);
        KVSCOPE_UNROLL
        for (int i = 0; i < kPiece; ++i) sums[i] = fma(ofRow, batch.pieces[r][i], sums[i]);
    }
}

/// A block sums the columns of one turn. Rows of an unusual width are read again for that, after all turns' squares.
template <class Element, int Width>
__global__ void __launch_bounds__(kThreads, kAnchorBlocks) anchorKernel(AnchorCall call) {
    using Split = RowSplit<Element, Width>;
    const std::int64_t piece = Width > 0 ? blockIdx.x : blockIdx.x / call.turns, turn = blockIdx.x - piece * call.turns,
                       begin = piece * kRowsPerBlock, d = Width > 0 ? Width : call.rows.width;
    const RowReader<Element, Width> reader(call.rows, blockIdx.y, endOfBlock(call.rows, begin), call.isStraight);
    double sums[kPiece] = {}, squares[Split::kRows] = {};
    reader.each(
        begin, kWarps,
        [&](const auto& batch, std::int64_t) {
            if (call.normalised) addSquares(batch, squares);
        },
        [&](auto& batch, std::int64_t first) {
            const double factor = call.normalised ? inverseLength(sumOfEach<Split::kLanes>(squares, reader.lane())) : 1;
            if (Width == 0) reader.read(batch, first, turn);
            addRows<Split>(batch, factor, sums);
            clear(squares);
        });
    letNextBegin();
    double* ofGroups = &sharedAs<double>(); // [groups of the block, columns]
    const int group = static_cast<int>(threadIdx.x) / Split::kLanes, column = static_cast<int>(threadIdx.x);
    KVSCOPE_UNROLL
    for (int i = 0; i < kPiece; ++i) ofGroups[group * Split::kColumns + reader.lane() * kPiece + i] = sums[i];
    __syncthreads();
    if (column >= Split::kColumns || turn * Split::kColumns + column >= d) return;
    double sum = 0;
    for (int g = 0; g < kThreads / Split::kLanes; ++g) sum += ofGroups[g * Split::kColumns + column];
    call.partial[(blockIdx.y * call.pieces + piece) * d + turn * Split::kColumns + column] = sum;
}

constexpr int kFinishColumns = 16, kFinishParts = 32;

/// Adds the partial sums: every 32nd piece by one thread with several loads in flight, then the 32 sums.
__global__ void __launch_bounds__(kFinishColumns* kFinishParts) finishAnchorKernel(AnchorCall call) {
    constexpr int kAhead = 8;
    letNextBegin();
    waitForWorkBefore();
    double(&ofParts)[kFinishParts][kFinishColumns] = sharedAs<double[kFinishParts][kFinishColumns]>();
    const int column = static_cast<int>(threadIdx.x) % kFinishColumns,
              part = static_cast<int>(threadIdx.x) / kFinishColumns;
    const std::int64_t d = call.rows.width, c = std::int64_t{blockIdx.x} * kFinishColumns + column;
    const std::int64_t step = kFinishParts * d, end = call.pieces * d;
    const double* partial = call.partial + blockIdx.y * end + c;
    double sum = 0;
    for (std::int64_t first = part * d; c < d && first < end; first += kAhead * step) {
        double numbers[kAhead];
        KVSCOPE_UNROLL
        for (int k = 0; k < kAhead; ++k) numbers[k] = first + k * step < end ? partial[first + k * step] : 0;
        KVSCOPE_UNROLL
        for (int k = 0; k < kAhead; ++k) sum += numbers[k];
    }
    ofParts[part][column] = sum;
    __syncthreads();
    if (part > 0 || c >= d) return;
    KVSCOPE_UNROLL
    for (int p = 1; p < kFinishParts; ++p) sum += ofParts[p][column];
    call.anchor[blockIdx.y * d + c] = static_cast<float>(sum / static_cast<double>(call.rows.rows));
}

/// Calls work(Element{}, width) with the rows' element type and, for the usual widths, a constant width; 0: any other.
template <class Work> void withElementAndWidth(const DeviceRows& rows, const Work& work) {
    withElement(rows.type, [&](auto element) {
        if (rows.width == 128 && hasStraightRows(rows))
            work(element, std::integral_constant<int, 128>{});
        else if (rows.width == 64 && hasStraightRows(rows))
            work(element, std::integral_constant<int, 64>{});
        else
            work(element, std::integral_constant<int, 0>{});
    });
}

} // namespace

void rowNorms(const DeviceRows& rows, float* norms, Stream stream) {
    withElementAndWidth(rows, [&](auto element, auto width) {
        launch("key norms", normKernel<decltype(element), width()>, {piecesOf(rows.rows, kRowsOfNorms), rows.heads},
               kThreads, 0, stream, RowsCall{rows, hasStraightRows(rows), nullptr, norms, Metric::Dot});
    });
}

void similarity(const DeviceRows& rows, const float* anchors, Metric metric, float* similarities, Stream stream) {
    withElementAndWidth(rows, [&](auto element, auto width) {
        launch("similarity to an anchor", similarityKernel<decltype(element), width()>,
               {piecesOf(rows.rows, kRowsPerBlock), rows.heads}, kThreads, 0, stream,
               RowsCall{rows, hasStraightRows(rows), anchors, similarities, metric}, true);
    });
}

std::size_t anchorScratchBytes(const DeviceRows& rows) {
    return static_cast<std::size_t>(rows.heads * piecesOf(rows.rows, kRowsPerBlock) * rows.width) * sizeof(double);
}

void meanAnchor(const DeviceRows& rows, bool normalised, void* scratch, float* anchor, Stream stream) {
    const std::int64_t pieces = piecesOf(rows.rows, kRowsPerBlock);
    AnchorCall call{rows, hasStraightRows(rows), normalised, static_cast<double*>(scratch), pieces, 1, anchor};
    withElementAndWidth(rows, [&](auto element, auto width) {
        using Split = RowSplit<decltype(element), width()>;
        call.turns = Split::turnsOf(rows.width);
        launch("anchor sums", anchorKernel<decltype(element), width()>, {pieces * call.turns, rows.heads}, kThreads,
               kThreads * kPiece * sizeof(double), stream, call);
    });
    launch("anchor", finishAnchorKernel, {piecesOf(rows.width, kFinishColumns), rows.heads},
           kFinishColumns * kFinishParts, kFinishColumns * kFinishParts * sizeof(double), stream, call, true);
}

} // namespace kvscope::gpu
