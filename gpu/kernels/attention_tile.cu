// The attention map at screen resolution. A block keeps 64 keys and walks over the rows that see them, tile by tile:
// the weights of the heads are combined, every pixel takes the maximum of its cells, and the keys' sums are kept for
// the marginal. The maximum is one of integers, so the order of blocks does not matter.
#include "gpu/kernels/attention_tile.h"

#include "gpu/kernels/attention_tiles.h"
#include "gpu/kernels/map_steps.h"
#include "gpu/kernels/stop_word.h"

namespace kvscope::gpu {

namespace {

constexpr int kPixelThreads = 256;
constexpr std::int64_t kWantedBlocks = 1024;
constexpr std::int64_t kMostRowTiles =
    256; // per block, so that a stop need not wait for long rows, and for sums in float

/// Key tiles of the rectangle, and splits of the rows where the keys alone give too few or too long blocks.
struct TileGrid {
    std::int64_t firstKeyTile, keyTiles, splits, rowTilesPerSplit;
};

TileGrid gridOf(const AttentionTileCall& call) {
    const std::int64_t first = call.keyBegin / kTile, keys = (call.keyEnd + kTile - 1) / kTile - first;
    const std::int64_t rows = rowTilesOf(call.attention), fair = kWantedBlocks / keys;
    const std::int64_t least = (rows + kMostRowTiles - 1) / kMostRowTiles, wanted = fair < least ? least : fair;
    const std::int64_t splits = wanted < 1 ? 1 : wanted > rows ? rows : wanted;
    const std::int64_t per = (rows + splits - 1) / splits;
    return {first, keys, (rows + per - 1) / per, per};
}

struct MapCall {
    AttentionTileCall tile;
    TileGrid grid;
    double* keySums;  ///< [splits, keyTiles * kTile]
    unsigned* pixels; ///< [height, width]
    std::int64_t beginTile;
};

template <class Tile> struct Shared {
    using Number = typename Tile::Value;
    typename Tile::Shared tile;
    TileSide keys, rows[3];
    WeightShift<Number> shifts[3][kTile];
    std::int32_t pixelRows[3][kTile]; ///< of the tile's queries
    std::int32_t keyPixels[kTile];    ///< pixel column of each key; -1: outside of the rectangle
    unsigned whole[2];
    Number keySums[Tile::kColumnWarps][kTile]; ///< of the warps that share keys
};

/// The group of heads, the same for a whole launch.
struct Group {
    PlaceRule places;
    int members;
    HeadRule rule;
    bool isLogits;

    /// What sums of heads are multiplied by.
    __device__ __forceinline__ double meanFactor() const { return rule == HeadRule::Mean ? 1.0 / members : 1.0; }
};

/// The larger one; NaN is larger than all.
template <class Number> __device__ __forceinline__ Number largerOrNaN(Number a, Number b) {
    return a < b || b != b ? b : a;
}

template <class Tile>
__device__ __forceinline__ void makeWeights(const WeightShift<typename Tile::Value> (&shifts)[kTile],
                                            typename Tile::Value factor,
                                            typename Tile::Value (&values)[Tile::kSlots][Tile::kPerSlot]) {
    KVSCOPE_UNROLL for (int k = 0; k < Tile::kPerSlot; ++k) {
        const auto shift = shifts[Tile::columnOf(k)];
        KVSCOPE_UNROLL for (int slot = 0; slot < Tile::kSlots; ++slot) values[slot][k] =
            shift.weightOf(values[slot][k], factor);
    }
}

/// Natural logits; a place without a head changes nothing when heads are combined.
template <class Tile>
__device__ __forceinline__ void makeLogits(const Group& group, typename Tile::Value factor,
                                           typename Tile::Value (&values)[Tile::kSlots][Tile::kPerSlot]) {
    using Number = typename Tile::Value;
    const Number nothing = group.rule == HeadRule::Max ? -Number(__builtin_inff()) : Number(0);
    KVSCOPE_UNROLL for (int k = 0; k < Tile::kPerSlot; ++k) {
        const bool isMember = group.places.at(Tile::columnOf(k)).member < group.members;
        KVSCOPE_UNROLL for (int slot = 0; slot < Tile::kSlots; ++slot) values[slot][k] =
            isMember ? values[slot][k] * (factor / kLogitsPerNat<Number>) : nothing;
    }
}

/// Combines the weights of a query's heads, for the mean without the division. The cell of a query is then at the first
/// of its columns that the thread has, and lanes that share the query have the same.
template <class Tile>
__device__ __forceinline__ void combineHeads(const Group& group, typename Tile::Value (&weights)[Tile::kPerSlot]) {
    using Number = typename Tile::Value;
    constexpr int kCount = Tile::kPerSlot;
    const auto both = [&](Number a, Number b) { return group.rule == HeadRule::Max ? largerOrNaN(a, b) : a + b; };
    const int bits = group.places.bits;
    if (bits == 0) return;
    KVSCOPE_UNROLL for (int k = 0; k < kCount; k += 2) weights[k] = both(weights[k], weights[k + 1]);
    if (bits == 1) return;
    KVSCOPE_UNROLL for (int k = 0; k < kCount; k += 4) {
        Number& cell = weights[k];
        cell = both(cell, weights[k + 2]);
        if (bits > 2) cell = both(cell, __shfl_xor_sync(kAllLanes, cell, 1));
        if (bits > 3) cell = both(cell, __shfl_xor_sync(kAllLanes, cell, 2));
    }
    KVSCOPE_UNROLL for (int k = 0; bits > 4 && k < kCount; k += 8) weights[k] = both(weights[k], weights[k + 4]);
}

/// Whether column k of a thread's values holds a cell, and this thread answers for it.
template <class Tile> __device__ __forceinline__ bool ownsCell(const PlaceRule& places, int k) {
    const int step = places.bits < 2 ? 1 << places.bits : places.bits < 5 ? 4 : 8;
    return k % step == 0 && Tile::lane() % (1 << places.lanes) == 0;
}

__device__ __forceinline__ void raisePixel(const MapCall& call, std::int64_t y, std::int64_t x, unsigned bits) {
    if (bits != 0) atomicMax(&call.pixels[y * call.tile.width + x], bits);
}

/// Pixels of the tile's first and last key that lie in the rectangle.
struct PixelSpan {
    std::int32_t first, last;
    __device__ __forceinline__ bool isFew() const { return last <= first + 1; }
};

template <class Tile>
__device__ __forceinline__ void placePixels(Shared<Tile>& s, const AttentionTileCall& t, std::int64_t keyTile) {
    const std::int64_t key = keyTile * kTile + threadIdx.x, offset = key - t.keyBegin;
    if (threadIdx.x < kTile)
        s.keyPixels[threadIdx.x] = key < t.keyBegin || key >= t.keyEnd
                                       ? -1
                                       : static_cast<std::int32_t>(pieceOf(t.keyEnd - t.keyBegin, t.width, offset));
}

template <class Tile>
__device__ __forceinline__ PixelSpan pixelsOf(const Shared<Tile>& s, const AttentionTileCall& t, std::int64_t keyTile) {
    const std::int64_t first = t.keyBegin - keyTile * kTile, last = t.keyEnd - 1 - keyTile * kTile;
    return {s.keyPixels[first > 0 ? first : 0], s.keyPixels[last < kTile ? last : kTile - 1]};
}

/// Maxima of two neighbouring pixels.
struct TwoPixels {
    unsigned bits[2] = {0, 0};

    __device__ __forceinline__ void raise(bool isFirst, unsigned value) {
        bits[0] = isFirst && value > bits[0] ? value : bits[0];
        bits[1] = !isFirst && value > bits[1] ? value : bits[1];
    }
    /// Over the lanes whose numbers differ in these bits.
    __device__ __forceinline__ void gather(int lanes) {
        for (int half = 1; half < kWarp; half *= 2) {
            if ((lanes & half) == 0) continue;
            for (unsigned& best : bits) {
                const unsigned other = __shfl_xor_sync(kAllLanes, best, half);
                best = other > best ? other : best;
            }
        }
    }
    __device__ __forceinline__ void write(const MapCall& call, std::int64_t y, PixelSpan span) const {
        raisePixel(call, y, span.first, bits[0]);
        raisePixel(call, y, span.last, bits[1]);
    }
};

/// The cells of a block of threads: maxima of pixels and sums of keys. The maxima of a row of pixels stay with their
/// threads, a number to a key, while tiles lie in that row.
template <class Tile> class MapCells {
public:
    using Number = typename Tile::Value;
    using Values = Number[Tile::kSlots][Tile::kPerSlot];

    __device__ __forceinline__ MapCells(const Shared<Tile>& s, const MapCall& call, const Group& group, PixelSpan span)
        : m_s(s), m_call(call), m_group(group), m_span(span), m_meanFactor(Number(group.meanFactor())) {
        KVSCOPE_UNROLL for (int slot = 0; slot < Tile::kSlots; ++slot) {
            m_pixels[slot] = s.keyPixels[Tile::rowOf(slot)];
            m_best[slot] = kNothing;
        }
    }

    /// weights[slot][first column of a query]
    __device__ __forceinline__ void add(const TileWalk& walk, const Values& weights) {
        const AttentionCall& a = m_call.tile.attention;
        const std::int64_t left = a.queryCount - walk.tile * queriesPerTile(a);
        const int queries = static_cast<int>(left < queriesPerTile(a) ? left : queriesPerTile(a));
        const std::int32_t* pixelRows = m_s.pixelRows[walk.place];
        const bool isOneRow = m_span.isFew() && pixelRows[0] == pixelRows[queries - 1];
        if (!isOneRow || m_y != pixelRows[0]) turnTo(isOneRow ? pixelRows[0] : -1);
        if (isOneRow && walk.isWhole())
            addWhole(weights);
        else
            addSome(walk, weights, isOneRow);
    }

    /// Writes the row of pixels that the threads still hold.
    __device__ __forceinline__ void finish() { turnTo(-1); }

    Number keySums[Tile::kSlots] = {};

private:
    static constexpr Number kNothing = -Number(__builtin_inff());

    __device__ __forceinline__ unsigned bitsOf(Number cell) const {
        return pixelBits(static_cast<float>(cell * m_meanFactor));
    }

    /// A tile without masks inside one row of pixels.
    __device__ __forceinline__ void addWhole(const Values& weights) {
        KVSCOPE_UNROLL for (int k = 0; k < Tile::kPerSlot; ++k) {
            if (!ownsCell<Tile>(m_group.places, k)) continue;
            m_isHeld = ~0U;
            KVSCOPE_UNROLL for (int slot = 0; slot < Tile::kSlots; ++slot) {
                m_best[slot] = largerOrNaN(m_best[slot], weights[slot][k]);
                keySums[slot] += weights[slot][k];
            }
        }
    }

    __device__ __forceinline__ void addSome(const TileWalk& walk, const Values& weights, bool isOneRow) {
        constexpr int kAcrossRows = 4 + 8 + 16; // the lanes of a query's columns have other keys
        const AttentionCall& a = m_call.tile.attention;
        KVSCOPE_UNROLL for (int k = 0; k < Tile::kPerSlot; ++k) {
            const bool owns = ownsCell<Tile>(m_group.places, k);
            const int column = Tile::columnOf(k);
            const std::int32_t y = m_s.pixelRows[walk.place][m_group.places.at(column).query];
            TwoPixels cells;
            KVSCOPE_UNROLL for (int slot = 0; slot < Tile::kSlots; ++slot) {
                const bool seen =
                    walk.isWhole() || isSeen(a, m_s.rows[walk.place], column, m_s.keys, Tile::rowOf(slot));
                if (!owns || m_pixels[slot] < 0 || !seen) continue;
                keySums[slot] += weights[slot][k];
                if (isOneRow) {
                    m_best[slot] = largerOrNaN(m_best[slot], weights[slot][k]);
                    m_isHeld |= 1U << slot;
                } else if (m_span.isFew()) {
                    cells.raise(m_pixels[slot] == m_span.first, bitsOf(weights[slot][k]));
                } else {
                    raisePixel(m_call, y, m_pixels[slot], bitsOf(weights[slot][k]));
                }
            }
            if (isOneRow || !m_span.isFew()) continue;
            cells.gather(kAcrossRows);
            if (owns && y >= 0 && Tile::lane() < 4) cells.write(m_call, y, m_span);
        }
    }

    /// Goes on to another row of pixels, -1: to none. All threads of a warp call it together.
    __device__ __forceinline__ void turnTo(std::int32_t y) {
        if (m_y >= 0) {
            TwoPixels cells;
            KVSCOPE_UNROLL for (int slot = 0; slot < Tile::kSlots; ++slot) {
                if (m_pixels[slot] >= 0 && (m_isHeld >> slot & 1) != 0)
                    cells.raise(m_pixels[slot] == m_span.first, bitsOf(m_best[slot]));
                m_best[slot] = kNothing;
            }
            m_isHeld = 0;
            cells.gather(kWarp - 1);
            if (Tile::lane() == 0) cells.write(m_call, m_y, m_span);
        }
        m_y = y;
    }

    const Shared<Tile>& m_s;
    const MapCall& m_call;
    const Group& m_group;
    PixelSpan m_span;
    Number m_meanFactor;
    std::int32_t m_y = -1, m_pixels[Tile::kSlots];
    Number m_best[Tile::kSlots];
    std::uint32_t m_isHeld = 0; ///< a bit for each slot: a cell lies in m_best
};

/// Writes the sums of the block's keys.
template <class Tile>
__device__ __forceinline__ void writeKeySums(Shared<Tile>& s, double* to, const Group& group,
                                             typename Tile::Value (&keySums)[Tile::kSlots]) {
    KVSCOPE_UNROLL for (int slot = 0; slot < Tile::kSlots; ++slot) {
        for (int half = 1; half < 4; half *= 2) keySums[slot] += __shfl_xor_sync(kAllLanes, keySums[slot], half);
        if (Tile::lane() % 4 == 0) s.keySums[Tile::columnWarp()][Tile::rowOf(slot)] = keySums[slot];
    }
    __syncthreads();
    if (threadIdx.x >= kTile) return;
    double sum = 0;
    for (int warp = 0; warp < Tile::kColumnWarps; ++warp) sum += double(s.keySums[warp][threadIdx.x]);
    to[threadIdx.x] = group.isLogits ? 0 : sum * group.meanFactor();
}

template <class Tile> __global__ void __launch_bounds__(Tile::kThreads, Tile::kMapBlocks) mapKernel(MapCall call) {
    using Number = typename Tile::Value;
    auto& s = sharedAs<Shared<Tile>>();
    const AttentionCall& a = call.tile.attention;
    if (isStopped(a.stop)) return;
    const LogitShape<Number> shape(a);
    const Group group{PlaceRule(a), a.groups[1] - a.groups[0], call.tile.combine, !call.tile.normalisers};
    const std::int64_t block = call.beginTile + blockIdx.x, keyTile = call.grid.firstKeyTile + block;
    TileRange range = rowTilesFor(a, 0, keyTile);
    const std::int64_t from = blockIdx.y * call.grid.rowTilesPerSplit, to = from + call.grid.rowTilesPerSplit;
    range = {range.begin > from ? range.begin : from, range.end < to ? range.end : to};
    const auto place = [&](int at, std::int64_t rowTile) {
        placeRows(s.rows[at], a, 0, rowTile);
        if (threadIdx.x >= kTile) return;
        const std::int64_t row = rowTile * queriesPerTile(a) + threadIdx.x;
        s.pixelRows[at][threadIdx.x] = row < a.queryCount ? call.tile.pixelRows[row] : -1;
        s.shifts[at][threadIdx.x] =
            shiftOf<Number>(call.tile.normalisers, group.isLogits ? -1 : s.rows[at].rowSlots[threadIdx.x]);
    };
    placeKeys(s.keys, a, 0, keyTile);
    placePixels(s, call.tile, keyTile);
    for (int ahead = 0; ahead < 2; ++ahead) place(ahead, range.begin + ahead);
    TileWalk walk(range, wholeTiles(s.whole, range, Tile::kThreads,
                                    [&](std::int64_t rowTile) { return isWhole(a, 0, rowTile, keyTile); }));
    const PixelSpan span = pixelsOf(s, call.tile, keyTile);
    MapCells<Tile> cells(s, call, group, span);
    Tile tile;
    if (!walk.isAtEnd()) tile.start(s.tile, keysOf(a, s.keys), queriesOf(a, s.rows[0]));
    for (; !walk.isAtEnd(); walk.step()) {
        Number values[Tile::kSlots][Tile::kPerSlot];
        tile.multiply(
            s.tile, keysOf(a, s.keys), queriesOf(a, s.rows[walk.place]), walk.stage,
            [&] {
                if (!walk.isLast()) tile.fetch(s.tile, queriesOf(a, s.rows[walk.placeAfter(1)]), 1 - walk.stage);
            },
            values);
        place(walk.placeAfter(2), walk.tile + 2);
        shape.apply(values);
        if (group.isLogits)
            makeLogits<Tile>(group, shape.factor(), values);
        else
            makeWeights<Tile>(s.shifts[walk.place], shape.factor(), values);
        KVSCOPE_UNROLL for (int slot = 0; slot < Tile::kSlots; ++slot) combineHeads<Tile>(group, values[slot]);
        cells.add(walk, values);
    }
    cells.finish();
    writeKeySums<Tile>(s, call.keySums + (blockIdx.y * call.grid.keyTiles + block) * kTile, group, cells.keySums);
}

__global__ void __launch_bounds__(kPixelThreads) clearPixelsKernel(MapCall call) {
    const std::int64_t i = std::int64_t{blockIdx.x} * kPixelThreads + threadIdx.x;
    if (i < call.tile.height * call.tile.width) call.pixels[i] = 0;
}

/// Converts pixels to floats and adds up the columns' sums in key order.
__global__ void __launch_bounds__(kPixelThreads) finishMapKernel(MapCall call) {
    const AttentionTileCall& t = call.tile;
    const std::int64_t i = std::int64_t{blockIdx.x} * kPixelThreads + threadIdx.x;
    if (i < t.height * t.width) t.cells[i] = valueOfPixel(call.pixels[i]);
    if (i >= t.width) return;
    const std::int64_t length = t.keyEnd - t.keyBegin, origin = call.grid.firstKeyTile * kTile;
    double sum = 0;
    for (std::int64_t split = 0; split < call.grid.splits; ++split)
        for (std::int64_t k = pieceBegin(length, t.width, i); k < pieceBegin(length, t.width, i + 1); ++k)
            sum += call.keySums[split * call.grid.keyTiles * kTile + t.keyBegin + k - origin];
    t.columnSums[i] = static_cast<float>(sum);
}

std::int64_t keySumsOf(const TileGrid& grid) { return grid.splits * grid.keyTiles * kTile; }

} // namespace

std::size_t attentionTileScratchBytes(const AttentionTileCall& call) {
    return static_cast<std::size_t>(keySumsOf(gridOf(call))) * sizeof(double) +
           static_cast<std::size_t>(call.height * call.width) * sizeof(unsigned);
}

std::int64_t mapTiles(const AttentionTileCall& call) { return gridOf(call).keyTiles; }

void attentionTile(const AttentionTileCall& tile, Stream stream, std::int64_t beginTile, std::int64_t endTile) {
    const TileGrid grid = gridOf(tile);
    auto* keySums = static_cast<double*>(tile.scratch);
    const MapCall call{tile, grid, keySums, reinterpret_cast<unsigned*>(keySums + keySumsOf(grid)), beginTile};
    const Grid pixels{(tile.height * tile.width + kPixelThreads - 1) / kPixelThreads};
    const bool isLast = endTile >= grid.keyTiles;
    if (beginTile == 0) launch("clearing the map", clearPixelsKernel, pixels, kPixelThreads, 0, stream, call);
    withTile<32, 32>(tile.attention, [&](auto kind) {
        using Tile = decltype(kind);
        launch("attention map", mapKernel<Tile>, {(isLast ? grid.keyTiles : endTile) - beginTile, grid.splits},
               Tile::kThreads, sizeof(Shared<Tile>), stream, call);
    });
    if (isLast) launch("finishing the map", finishMapKernel, pixels, kPixelThreads, 0, stream, call);
}

} // namespace kvscope::gpu
