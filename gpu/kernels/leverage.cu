// Three passes over the rows - column means, Gram matrices, squared lengths - which multiply rows with a matrix of 64
// columns and differ in what they make of the products. A warp has 8 or 16 rows and all columns, so that it needs no
// other warp: its lanes read their rows into registers, and the transposed products, [64 columns, rows], are operands
// of the Gram matrix's products as they lie. Only the matrix is in shared memory, in the order in which lanes read it.
#include "gpu/kernels/leverage.h"

#include "gpu/kernels/lanes.h"
#include "gpu/kernels/row_batch.h"
#include "gpu/kernels/stop_word.h"
#include "gpu/kernels/tensor_cores.h"

namespace kvscope::gpu {

namespace {

constexpr int kThreads = 256, kWarps = kThreads / kWarp;
constexpr int kSlots = kMostSketchColumns / 8; ///< fragments of eight columns
constexpr int kChunk = 4 * kPiece;             ///< elements of a row that its four lanes hold
constexpr int kDepth = 4 * kChunk;             ///< elements of a row that shared memory has columns for
constexpr int kPairs = kPiece / 2;             ///< of steps of a chunk; a lane reads what two steps need at once
constexpr std::int64_t kPartEntries = std::int64_t{kDepth} * kMostSketchColumns;
/// Rows of a block: a multiple that leaves one block per multiprocessor, of which an H100 has 132.
constexpr std::int64_t kBlockRows = 128, kMostMultiple = 8, kFullGpu = 128;

constexpr std::int64_t piecesOf(std::int64_t count, std::int64_t size) { return (count + size - 1) / size; }

std::int64_t rowsOfBlock(const DeviceRows& rows) {
    const std::int64_t multiple = piecesOf(rows.heads * rows.rows, kFullGpu * kBlockRows);
    return kBlockRows * (multiple < kMostMultiple ? multiple : kMostMultiple);
}

std::int64_t blocksOfHead(const DeviceRows& rows) { return piecesOf(rows.rows, rowsOfBlock(rows)); }

/// Two steps' elements of the matrix: steps multiply four elements of every row, one per lane of its four.
struct alignas(16) StepPair {
    double of[2];
};

/// A call and how it lies in scratch: matrices, what is subtracted from the products, sums of blocks.
struct Pass {
    LeverageCall call;
    bool isStraight;
    std::int64_t rowsOfBlock, blocks; ///< of a head
    std::int64_t firstBlock;
    std::int64_t parts; ///< of kDepth elements
    StepPair* matrices; ///< [H, parts, kDepth / 8, kSlots, kWarp]
    double* offsets;    ///< [H, 64]
    double* partials;   ///< [H, blocks, numbers of a kind, kWarp]
};

template <class Number> __device__ __forceinline__ double entryOf(const Pass& pass, const Number* row, int column) {
    const std::int64_t k = pass.call.columns;
    if (!pass.call.directions) return double(row[column]);
    const double* direction = pass.call.directions + blockIdx.y * k * k + column;
    double sum = 0;
    for (std::int64_t j = 0; j < k; ++j) sum = fma(double(row[j]), direction[j * k], sum);
    return sum;
}

/// The matrix that rows are multiplied with, the sketch or the sketch times W, and the mean's product with it. One
/// thread per entry, one more block for the offsets; zeros beyond the width and the columns.
__global__ void __launch_bounds__(kThreads) matrixKernel(Pass pass) {
    waitForWorkBefore();
    const LeverageCall& call = pass.call;
    const std::int64_t k = call.columns, d = call.rows.width, head = blockIdx.y;
    const auto index = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
    if (index >= pass.parts * kPartEntries) {
        const int column = threadIdx.x;
        if (column < kMostSketchColumns)
            pass.offsets[head * kMostSketchColumns + column] =
                column < k && call.means ? entryOf(pass, call.means + head * k, column) : 0;
        return;
    }
    const int step = static_cast<int>(index % 2), lane = static_cast<int>(index / 2 % kWarp);
    const std::int64_t slot = index / (2 * kWarp) % kSlots, pair = index / (2 * kWarp * kSlots);
    const std::int64_t r = pair / kPairs * kChunk + lane % 4 * kPiece + pair % kPairs * 2 + step;
    const int column = static_cast<int>(slot) * 8 + lane / 4;
    const float* sketch = call.sketch + (call.sketches > 1 ? head * d * k : 0) + r * k;
    pass.matrices[(head * pass.parts * kPartEntries + index) / 2].of[step] =
        r < d && column < k ? entryOf(pass, sketch, column) : 0;
}

template <class Kind> struct Shared {
    union {
        StepPair matrix[kDepth / 8][kSlots][kWarp];
        double numbers[kWarps / 2][Kind::kNumbers][kWarp]; ///< of the other half of the warps
    };
    double offsets[kMostSketchColumns];
};

/// Products of the matrix's columns with the warp's rows, eight rows per group: [slot][group] of lane 4 g + t has
/// column 8 slot + g and the rows 2t and 2t + 1.
template <int Groups> using Products = double[kSlots][Groups][2];

/// Where a warp is: at a row of a head, of which `left` rows are left.
struct WarpRows {
    std::int64_t head, left;
};

__device__ __forceinline__ int laneRow(int group, int c) {
    return group * 8 + static_cast<int>(threadIdx.x) % 4 * 2 + c;
}
__device__ __forceinline__ int laneColumn(int slot) { return slot * 8 + static_cast<int>(threadIdx.x) % kWarp / 4; }

struct Means {
    static constexpr int kNumbers = kSlots, kGroups = 2;
    double numbers[kNumbers] = {};

    __device__ __forceinline__ double& number(int i) { return numbers[i]; }
    __device__ __forceinline__ void add(const double*, const Pass&, const WarpRows&, Products<kGroups>& products) {
        KVSCOPE_UNROLL for (int slot = 0; slot < kSlots; ++slot)
            KVSCOPE_UNROLL for (int group = 0; group < kGroups; ++group) numbers[slot] +=
            products[slot][group][0] + products[slot][group][1];
    }
    static __device__ __forceinline__ void put(const LeverageCall& call, int i, double sum) {
        const double ofRows = sumOfLanes<4>(sum);
        if (threadIdx.x % 4 == 0 && laneColumn(i) < call.columns)
            call.means[blockIdx.y * call.columns + laneColumn(i)] = ofRows / static_cast<double>(call.rows.rows);
    }
};

/// Blocks of 8 x 8 on and above the diagonal.
struct Grams {
    static constexpr int kNumbers = kSlots * (kSlots + 1), kGroups = 1; ///< the sums need the registers
    double sums[kNumbers / 2][2] = {};

    KVSCOPE_PORTABLE static constexpr int blockOf(int i, int j) { return i * (2 * kSlots - i - 1) / 2 + j; }
    __device__ __forceinline__ double& number(int i) { return sums[i / 2][i % 2]; }
    __device__ __forceinline__ void add(const double* offsets, const Pass&, const WarpRows& rows,
                                        Products<kGroups>& products) {
        KVSCOPE_UNROLL for (int slot = 0; slot < kSlots; ++slot) {
            const double offset = offsets[laneColumn(slot)];
            KVSCOPE_UNROLL for (int c = 0; c < 2; ++c) products[slot][0][c] -= laneRow(0, c) < rows.left ? offset : 0;
        }
        // Eight rows are four pairs of them: the lanes' first rows, then their second ones.
        KVSCOPE_UNROLL for (int j = 0; j < kSlots; ++j) {
            KVSCOPE_UNROLL for (int i = 0; i + 1 <= j; i += 2) multiplyDoubles(
                sums[blockOf(i, j)], sums[blockOf(i + 1, j)], products[i][0], products[i + 1][0], products[j][0]);
            if (j % 2 != 0) continue;
            KVSCOPE_UNROLL for (int c = 0; c < 2; ++c)
                multiplyDoubles(sums[blockOf(j, j)], products[j][0][c], products[j][0][c]);
        }
    }
    static __device__ __forceinline__ void put(const LeverageCall& call, int number, double sum) {
        int i = 0;
        while (i + 1 < kSlots && blockOf(i + 1, i + 1) <= number / 2) ++i;
        const int j = number / 2 - blockOf(i, 0);
        const std::int64_t k = call.columns, a = laneColumn(i), b = laneRow(j, number % 2);
        double* gram = call.grams + blockIdx.y * k * k;
        if (a >= k || b >= k) return;
        gram[a * k + b] = sum;
        if (i != j) gram[b * k + a] = sum;
    }
};

struct Lengths {
    static constexpr int kNumbers = 1, kGroups = 2; // no sums of a block

    __device__ __forceinline__ void add(const double* offsets, const Pass& pass, const WarpRows& rows,
                                        Products<kGroups>& products) {
        const LeverageCall& call = pass.call;
        float* scores = call.scores + (rows.head + 1) * call.rows.rows - rows.left;
        KVSCOPE_UNROLL for (int i = 0; i < 2 * kGroups; ++i) {
            double square = 0;
            KVSCOPE_UNROLL for (int slot = 0; slot < kSlots; ++slot) {
                const double x = products[slot][i / 2][i % 2] - offsets[laneColumn(slot)];
                square = fma(x, x, square);
            }
            for (int lanes = 4; lanes < kWarp; lanes *= 2) square += __shfl_xor_sync(kAllLanes, square, lanes);
            const int row = laneRow(i / 2, i % 2);
            if (threadIdx.x % kWarp < 4 && row < rows.left) scores[row] = static_cast<float>(square);
        }
    }
};

/// The warp's rows as its lanes read them: lane 4 g + t has row g of each group and, of every chunk, piece t.
template <class Element, int Groups> class WarpReader {
public:
    struct Pieces {
        RowPiece<Element> of[Groups];
    };

    __device__ __forceinline__ WarpReader(const Pass& pass, const WarpRows& rows)
        : m_row(static_cast<const Element*>(pass.call.rows.data) + rows.head * pass.call.rows.headStride +
                (pass.call.rows.rows - rows.left + lane() / 4) * pass.call.rows.width + lane() % 4 * kPiece) {}

    __device__ __forceinline__ void advance(const Pass& pass, int rows) { m_row += rows * pass.call.rows.width; }

    /// Eight elements of each row; zeros where there are none.
    __device__ __forceinline__ void load(Pieces& pieces, const Pass& pass, std::int64_t rowsLeft, int depth) const {
        const int left = static_cast<int>(pass.call.rows.width) - depth - lane() % 4 * kPiece;
        KVSCOPE_UNROLL for (int group = 0; group < Groups; ++group) {
            const Element* x = m_row + group * 8 * pass.call.rows.width + depth;
            pieces.of[group].clear();
            if (group * 8 + lane() / 4 >= rowsLeft || left <= 0) continue;
            if (pass.isStraight && left >= kPiece)
                pieces.of[group].readWords(x);
            else
                pieces.of[group].readElements(x, left);
        }
    }

private:
    static __device__ __forceinline__ int lane() { return static_cast<int>(threadIdx.x) % kWarp; }

    const Element* m_row;
};

/// products += the pieces times a chunk of the matrix. A lane's step is one element of its piece, in any order that the
/// matrix has too.
template <class Pieces, int Groups>
__device__ __forceinline__ void multiply(const StepPair (*matrix)[kSlots][kWarp], const Pieces& pieces,
                                         double (&products)[kSlots][Groups][2]) {
    KVSCOPE_UNROLL for (int pair = 0; pair < kPairs; ++pair) {
        double elements[Groups][2];
        KVSCOPE_UNROLL for (int group = 0; group < Groups; ++group) KVSCOPE_UNROLL for (int step = 0; step < 2; ++step)
            elements[group][step] = pieces.of[group][2 * pair + step];
        KVSCOPE_UNROLL for (int slot = 0; slot < kSlots; slot += 2) {
            const StepPair upper = matrix[pair][slot][threadIdx.x % kWarp],
                           lower = matrix[pair][slot + 1][threadIdx.x % kWarp];
            KVSCOPE_UNROLL for (int group = 0; group < Groups; ++group)
                multiplyDoubles(products[slot][group], products[slot + 1][group], upper.of, lower.of, elements[group]);
        }
    }
}

/// Adds the numbers of all warps, always in the same order; the first warp gets them.
template <class Kind> __device__ __forceinline__ void addWarps(Shared<Kind>& s, Kind& kind) {
    const int warp = static_cast<int>(threadIdx.x) / kWarp, lane = static_cast<int>(threadIdx.x) % kWarp;
    KVSCOPE_ROLL for (int half = kWarps / 2; half > 0; half /= 2) {
        __syncthreads();
        KVSCOPE_UNROLL for (int i = 0; i < Kind::kNumbers; ++i) if (warp >= half && warp < 2 * half)
            s.numbers[warp - half][i][lane] = kind.number(i);
        __syncthreads();
        KVSCOPE_UNROLL for (int i = 0; i < Kind::kNumbers; ++i) if (warp < half) kind.number(i) +=
            s.numbers[warp][i][lane];
    }
}

/// Puts part `part` of the head's matrix into shared memory.
template <class Kind>
__device__ __forceinline__ void hold(Shared<Kind>& s, const Pass& pass, std::int64_t head, std::int64_t part) {
    __syncthreads();
    const StepPair* from = pass.matrices + (head * pass.parts + part) * (kPartEntries / 2);
    for (int i = static_cast<int>(threadIdx.x); i < kPartEntries / 2; i += kThreads)
        copySixteen(&s.matrix[0][0][0] + i, from + i);
    waitForCopies();
    __syncthreads();
}

template <class Element, class Kind> __global__ void __launch_bounds__(kThreads, 1) rowsKernel(Pass pass) {
    constexpr int kWarpRows = 8 * Kind::kGroups;
    auto& s = sharedAs<Shared<Kind>>();
    waitForWorkBefore();
    if (isStopped(pass.call.stop)) return;
    const std::int64_t block = pass.firstBlock + blockIdx.x, first = block % pass.blocks * pass.rowsOfBlock;
    const int thread = static_cast<int>(threadIdx.x), width = static_cast<int>(pass.call.rows.width);
    WarpRows rows{block / pass.blocks, pass.call.rows.rows - first - thread / kWarp * kWarpRows};
    if (thread < kMostSketchColumns) s.offsets[thread] = pass.offsets[rows.head * kMostSketchColumns + thread];
    hold(s, pass, rows.head, 0);
    WarpReader<Element, Kind::kGroups> reader(pass, rows);
    typename WarpReader<Element, Kind::kGroups>::Pieces ahead;
    reader.load(ahead, pass, rows.left, 0);
    Kind kind;
    for (int passed = 0; passed < pass.rowsOfBlock; passed += kWarps * kWarpRows) {
        Products<Kind::kGroups> products = {};
        for (int depth = 0; depth < width; depth += kChunk) {
            if (depth % kDepth == 0 && pass.parts > 1) hold(s, pass, rows.head, depth / kDepth);
            const auto pieces = ahead;
            const bool isLast = depth + kChunk >= width;
            if (isLast) reader.advance(pass, kWarps * kWarpRows);
            reader.load(ahead, pass, isLast ? rows.left - kWarps * kWarpRows : rows.left, isLast ? 0 : depth + kChunk);
            multiply(&s.matrix[depth % kDepth / kChunk * kPairs], pieces, products);
        }
        kind.add(s.offsets, pass, rows, products);
        rows.left -= kWarps * kWarpRows;
    }
    if constexpr (Kind::kNumbers > 1) {
        addWarps(s, kind);
        if (thread >= kWarp) return;
        double* to = pass.partials + block * Kind::kNumbers * kWarp + thread;
        KVSCOPE_UNROLL for (int i = 0; i < Kind::kNumbers; ++i) to[i * kWarp] = kind.number(i);
    }
}

/// Adds the blocks of a head in their order, a thread per number.
template <class Kind> __global__ void __launch_bounds__(kThreads) addBlocksKernel(Pass pass) {
    constexpr int kAhead = 8, kNumbers = Kind::kNumbers * kWarp;
    static_assert(kNumbers % kThreads == 0);
    waitForWorkBefore();
    const int number = static_cast<int>(blockIdx.x) * kThreads + static_cast<int>(threadIdx.x);
    const double* from = pass.partials + blockIdx.y * pass.blocks * kNumbers + number;
    double sum = 0;
    for (std::int64_t first = 0; first < pass.blocks; first += kAhead) {
        double numbers[kAhead];
        KVSCOPE_UNROLL for (int i = 0; i < kAhead; ++i) numbers[i] =
            first + i < pass.blocks ? from[(first + i) * kNumbers] : 0;
        KVSCOPE_UNROLL for (const double x : numbers) sum += x;
    }
    Kind::put(pass.call, number / kWarp, sum);
}

Pass passOf(const LeverageCall& call, std::int64_t begin) {
    const DeviceRows& rows = call.rows;
    const std::int64_t parts = piecesOf(rows.width, kDepth);
    double* offsets = call.scratch + rows.heads * parts * kPartEntries;
    return {call,
            hasStraightRows(rows),
            rowsOfBlock(rows),
            blocksOfHead(rows),
            begin,
            parts,
            reinterpret_cast<StepPair*>(call.scratch),
            offsets,
            offsets + rows.heads * kMostSketchColumns};
}

template <class Kind>
void runPass(const char* name, const LeverageCall& call, std::int64_t begin, std::int64_t end, Stream stream) {
    const Pass pass = passOf(call, begin);
    const std::int64_t heads = call.rows.heads;
    if (begin == 0)
        launch("leverage's matrices", matrixKernel, {pass.parts * (kPartEntries / kThreads) + 1, heads}, kThreads, 0,
               stream, pass, true);
    withElement(call.rows.type, [&](auto element) {
        launch(name, rowsKernel<decltype(element), Kind>, {end - begin}, kThreads, sizeof(Shared<Kind>), stream, pass,
               true);
    });
    if constexpr (Kind::kNumbers > 1)
        if (end == heads * pass.blocks)
            launch(name, addBlocksKernel<Kind>, {Kind::kNumbers * kWarp / kThreads, heads}, kThreads, 0, stream, pass,
                   true);
}

} // namespace

std::int64_t leverageBlocks(const DeviceRows& rows) { return rows.heads * blocksOfHead(rows); }

std::int64_t leverageScratch(const LeverageCall& call) {
    return call.rows.heads * (piecesOf(call.rows.width, kDepth) * kPartEntries + kMostSketchColumns) +
           leverageBlocks(call.rows) * Grams::kNumbers * kWarp;
}

void sketchedMeans(const LeverageCall& call, std::int64_t begin, std::int64_t end, Stream stream) {
    runPass<Means>("means of sketched rows", call, begin, end, stream);
}

void sketchedGrams(const LeverageCall& call, std::int64_t begin, std::int64_t end, Stream stream) {
    runPass<Grams>("Gram matrices of sketched rows", call, begin, end, stream);
}

void leverageScores(const LeverageCall& call, std::int64_t begin, std::int64_t end, Stream stream) {
    runPass<Lengths>("leverage", call, begin, end, stream);
}

} // namespace kvscope::gpu
