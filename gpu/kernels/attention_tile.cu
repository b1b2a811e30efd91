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
    256; // per block, so that stops need not wait for long blocks, and float sums stay exact enough

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
    std::int32_t pixelRows[3][kTile]; ///< of the tile's places; -1: no query
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

    /// The factor on a sum over the heads.
    __device__ __forceinline__ double meanFactor() const { return rule == HeadRule::Mean ? 1.0 / members : 1.0; }
};

/// The larger one; NaN is larger than all.
__device__ __forceinline__ double largerOrNaN(double a, double b) { return a < b || b != b ? b : a; }
__device__ __forceinline__ float largerOrNaN(float a, float b) {
#if defined(__CUDA_ARCH__)
    float larger;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(larger) : "f"(a), "f"(b));
    return larger;
#else
    return a < b || b != b ? b : a;
#endif
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

/// Combines a key's weights over the heads of each query, 2^Bits places to a query. The cell of a query is then at the
/// first of its columns that the thread has, and lanes that share the query have the same cell.
template <int Bits, class Number, int Count, class Both>
__device__ __forceinline__ void combine(Number (&weights)[Count], const Both& both) {
    KVSCOPE_UNROLL for (int k = 0; Bits > 0 && k < Count; k += 2) weights[k] = both(weights[k], weights[k + 1]);
    KVSCOPE_UNROLL for (int k = 0; Bits > 1 && k < Count; k += 4) {
        Number& cell = weights[k];
        cell = both(cell, weights[k + 2]);
        if (Bits > 2) cell = both(cell, __shfl_xor_sync(kAllLanes, cell, 1));
        if (Bits > 3) cell = both(cell, __shfl_xor_sync(kAllLanes, cell, 2));
    }
    KVSCOPE_UNROLL for (int k = 0; Bits > 4 && k < Count; k += 8) weights[k] = both(weights[k], weights[k + 4]);
}

/// The same for all keys of a thread; for the mean without the division.
template <int Bits, class Number, int Slots, int Count>
__device__ __forceinline__ void combineHeads(HeadRule rule, Number (&weights)[Slots][Count]) {
    KVSCOPE_UNROLL for (auto& row : weights) {
        if (rule == HeadRule::Max)
            combine<Bits>(row, [](Number a, Number b) { return largerOrNaN(a, b); });
        else
            combine<Bits>(row, [](Number a, Number b) { return a + b; });
    }
}

/// Number of a thread's columns from one cell to the next.
KVSCOPE_PORTABLE constexpr int cellStep(int bits) { return bits < 2 ? 1 << bits : bits < 5 ? 4 : 8; }

/// Whether this thread counts the cells that it has: one of the lanes that have the same cells.
template <class Tile> __device__ __forceinline__ bool ownsCells(const PlaceRule& places) {
    return Tile::lane() % (1 << places.lanes) == 0;
}

/// Calls work with the number of bits as a constant, so that the loops over cells have no conditions.
template <class Work> __device__ __forceinline__ void withBits(int bits, const Work& work) {
    switch (bits) {
    case 0: return work(std::integral_constant<int, 0>());
    case 1: return work(std::integral_constant<int, 1>());
    case 2: return work(std::integral_constant<int, 2>());
    case 3: return work(std::integral_constant<int, 3>());
    case 4: return work(std::integral_constant<int, 4>());
    default: return work(std::integral_constant<int, 5>());
    }
}

template <class Tile>
__device__ __forceinline__ void placePixels(Shared<Tile>& s, const AttentionTileCall& t, std::int64_t keyTile) {
    const std::int64_t key = keyTile * kTile + threadIdx.x, offset = key - t.keyBegin;
    if (threadIdx.x < kTile)
        s.keyPixels[threadIdx.x] = key < t.keyBegin || key >= t.keyEnd
                                       ? -1
                                       : static_cast<std::int32_t>(pieceOf(t.keyEnd - t.keyBegin, t.width, offset));
}

/// The cells of a block of threads: maxima of pixels and sums of keys. The maxima of a row of pixels stay with their
/// threads, one number per key, while tiles lie in that row.
template <class Tile> class MapCells {
public:
    using Number = typename Tile::Value;
    using Values = Number[Tile::kSlots][Tile::kPerSlot];

    __device__ __forceinline__ MapCells(const Shared<Tile>& s, const MapCall& call, const Group& group)
        : m_s(s), m_call(call), m_group(group), m_meanFactor(Number(group.meanFactor())) {
        KVSCOPE_UNROLL for (int slot = 0; slot < Tile::kSlots; ++slot) {
            m_pixels[slot] = s.keyPixels[Tile::rowOf(slot)];
            m_best[slot] = kNothing;
        }
    }

    /// weights[slot][column] of each head
    __device__ __forceinline__ void add(const TileWalk& walk, Values& weights) {
        const AttentionCall& a = m_call.tile.attention;
        const std::int64_t left = a.queryCount - walk.tile * queriesPerTile(a);
        const std::int32_t* pixelRows = m_s.pixelRows[walk.place];
        const auto queries = static_cast<std::int32_t>(left < queriesPerTile(a) ? left : queriesPerTile(a));
        const std::int32_t first = pixelRows[0], last = pixelRows[m_group.places.placeOf({queries - 1, 0})];
        const bool isSimple = first == last && walk.isWhole();
        turnTo(first);
        withBits(m_group.places.bits, [&](auto bits) {
            constexpr int kStep = cellStep(decltype(bits)::value);
            combineHeads<decltype(bits)::value>(m_group.rule, weights);
            if (isSimple) return addWhole<kStep>(weights);
            const std::uint32_t cells = cellsOf(walk, kStep);
            KVSCOPE_ROLL for (std::int32_t y = first; y <= last; ++y) {
                turnTo(y);
                addRow<kStep>(pixelRows, weights, cells);
            }
        });
    }

    /// Writes the row of pixels that the threads still hold.
    __device__ __forceinline__ void finish() { turnTo(-1); }

    Number keySums[Tile::kSlots] = {};

private:
    static constexpr Number kNothing = -Number(__builtin_inff());
    static constexpr int kCells = Tile::kSlots * Tile::kPerSlot;
    static_assert(kCells <= 32);

    __device__ __forceinline__ void addCell(int slot, Number cell) {
        m_best[slot] = largerOrNaN(m_best[slot], cell);
        keySums[slot] += cell;
    }

    /// A tile without masks inside one row of pixels.
    template <int Step> __device__ __forceinline__ void addWhole(const Values& weights) {
        if (!ownsCells<Tile>(m_group.places)) return;
        m_isHeld = ~0U;
        KVSCOPE_UNROLL for (int k = 0; k < Tile::kPerSlot; k += Step) {
            KVSCOPE_UNROLL for (int slot = 0; slot < Tile::kSlots; ++slot) addCell(slot, weights[slot][k]);
        }
    }

    /// A bit for each of this thread's values that is a cell of the map, slots beside one another.
    __device__ __forceinline__ std::uint32_t cellsOf(const TileWalk& walk, int step) const {
        if (!ownsCells<Tile>(m_group.places)) return 0;
        // One slot's bits, one in every `step` columns: 0x11111111 is ~0 / 15.
        const std::uint32_t everyCell = ~0U / ((1U << (step * Tile::kSlots)) - 1);
        std::uint32_t cells = 0;
        KVSCOPE_UNROLL for (int slot = 0; slot < Tile::kSlots; ++slot) cells |=
            m_pixels[slot] < 0 ? 0 : everyCell << slot;
        KVSCOPE_ROLL for (int i = 0; !walk.isWhole() && i < kCells; ++i) {
            const int column = Tile::columnOf(i / Tile::kSlots), key = Tile::rowOf(i % Tile::kSlots);
            if (!isSeen(m_call.tile.attention, m_s.rows[walk.place], column, m_s.keys, key)) cells &= ~(1U << i);
        }
        return cells;
    }

    /// The cells of queries in the current row of pixels, m_y.
    template <int Step>
    __device__ __forceinline__ void addRow(const std::int32_t* pixelRows, const Values& weights, std::uint32_t cells) {
        KVSCOPE_UNROLL for (int k = 0; k < Tile::kPerSlot; k += Step) {
            const bool isHere = pixelRows[Tile::columnOf(k)] == m_y;
            KVSCOPE_UNROLL for (int slot = 0; slot < Tile::kSlots; ++slot) {
                if (!isHere || (cells >> (k * Tile::kSlots + slot) & 1) == 0) continue;
                m_isHeld |= 1U << slot;
                addCell(slot, weights[slot][k]);
            }
        }
    }

    /// Writes the current row of pixels and goes to another one; -1: to none. All threads of a warp call it together.
    __device__ __forceinline__ void turnTo(std::int32_t y) {
        if (y == m_y) return;
        KVSCOPE_UNROLL for (int slot = 0; slot < Tile::kSlots; ++slot) {
            const bool isHeld = (m_isHeld >> slot & 1) != 0;
            const std::uint32_t bits = overRow(isHeld ? pixelBits(static_cast<float>(m_best[slot] * m_meanFactor)) : 0,
                                               [](std::uint32_t a, std::uint32_t b) { return a > b ? a : b; });
            if (bits != 0 && m_pixels[slot] >= 0 && Tile::lane() % 4 == 0)
                atomicMax(&m_call.pixels[m_y * m_call.tile.width + m_pixels[slot]], bits);
            m_best[slot] = kNothing;
        }
        m_isHeld = 0;
        m_y = y;
    }

    const Shared<Tile>& m_s;
    const MapCall& m_call;
    const Group& m_group;
    Number m_meanFactor;
    std::int32_t m_y = -1, m_pixels[Tile::kSlots];
    Number m_best[Tile::kSlots];
    std::uint32_t m_isHeld = 0; ///< a bit for each slot: a cell lies in m_best
};

/// Writes the sums of the block's keys.
template <class Tile>
__device__ __forceinline__ void writeKeySums(Shared<Tile>& s, double* to, const Group& group,
                                             const typename Tile::Value (&keySums)[Tile::kSlots]) {
    KVSCOPE_UNROLL for (int slot = 0; slot < Tile::kSlots; ++slot) {
        const auto sum = overRow(keySums[slot], [](auto a, auto b) { return a + b; });
        if (Tile::lane() % 4 == 0) s.keySums[Tile::columnWarp()][Tile::rowOf(slot)] = sum;
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
    QueryPlacer placer(a, 0);
    SoftmaxNormaliser normaliser{0, 0};
    std::int32_t pixelRow = -1;
    const auto read = [&](std::int64_t rowTile) {
        placer.read(rowTile);
        if (!placer.isNormalising()) return;
        normaliser = normaliserAt(call.tile.normalisers, placer.slot());
        pixelRow = placer.slot() < 0 ? -1 : call.tile.pixelRows[placer.query()];
    };
    const auto put = [&](int to) {
        placer.put(s.rows[to]);
        if (!placer.isNormalising()) return;
        s.pixelRows[to][placer.place()] = pixelRow;
        s.shifts[to][placer.place()] = shiftOf<Number>(normaliser);
    };
    placeKeys(s.keys, a, 0, keyTile);
    placePixels(s, call.tile, keyTile);
    for (int ahead = 0; ahead < 2; ++ahead) {
        read(range.begin + ahead);
        put(ahead);
    }
    read(range.begin + 2);
    Tile tile;
    TileWalk walk(range, wholeTiles(
                             s.whole, range, Tile::kThreads,
                             [&] { tile.request(s.tile, keysOf(a, s.keys), queriesOf(a, s.rows[0])); },
                             [&](std::int64_t rowTile) { return isWhole(a, 0, rowTile, keyTile); }));
    MapCells<Tile> cells(s, call, group);
    if (!walk.isAtEnd()) tile.start(s.tile, keysOf(a, s.keys), queriesOf(a, s.rows[0]));
    for (; !walk.isAtEnd(); walk.step()) {
        Number values[Tile::kSlots][Tile::kPerSlot];
        tile.multiply(
            s.tile, keysOf(a, s.keys), queriesOf(a, s.rows[walk.place]), walk.stage,
            [&] {
                if (!walk.isLast()) tile.fetch(s.tile, queriesOf(a, s.rows[walk.placeAfter(1)]), 1 - walk.stage);
            },
            values);
        put(walk.placeAfter(2));
        read(walk.tile + 3);
        shape.apply(values);
        if (group.isLogits)
            makeLogits<Tile>(group, shape.factor(), values);
        else
            makeWeights<Tile>(s.shifts[walk.place], shape.factor(), values);
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
    withTile(tile.attention, [&](auto kind) {
        using Tile = decltype(kind);
        launch("attention map", mapKernel<Tile>, {(isLast ? grid.keyTiles : endTile) - beginTile, grid.splits},
               Tile::kThreads, sizeof(Shared<Tile>), stream, call);
    });
    if (isLast) launch("finishing the map", finishMapKernel, pixels, kPixelThreads, 0, stream, call);
}

} // namespace kvscope::gpu
