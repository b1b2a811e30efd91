#pragma once

#include "gpu/kernels/device.h"
#include "gpu/kernels/elements.h"

// Rows in the registers of a warp. A group of lanes shares a row, each lane holds eight neighbouring elements: 16 bytes
// of bfloat16 or half, so that a warp reads whole rows without gaps. Several rows are on their way at once, and the
// next batch of rows is loaded while the current one is added up.
namespace kvscope::gpu {

inline constexpr int kPiece = 8; ///< elements of a row that a lane holds

/// How a warp shares rows of Width elements. 0: any width, in turns of 128 columns.
template <class Element, int Width> struct RowSplit {
    static constexpr int kLanes = Width == 64 ? 8 : 16;        ///< that share a row
    static constexpr int kGroups = kWarp / kLanes;             ///< rows that a warp reads at once
    static constexpr int kColumns = kLanes * kPiece;           ///< of a turn
    static constexpr int kRows = sizeof(Element) == 4 ? 2 : 4; ///< of a batch, per group
    static constexpr int kRowsOfWarp = kGroups * kRows;        ///< of a batch
    static constexpr int kLanesOfSum = kLanes / kRows;         ///< that hold the same row's sum after sumOfEach

    KVSCOPE_PORTABLE static std::int64_t turnsOf(std::int64_t width) {
        return Width > 0 ? 1 : (width + kColumns - 1) / kColumns;
    }
};

/// Eight elements of a row, as they lie in memory.
template <class Element> struct RowPiece {
    struct __attribute__((may_alias)) Word {
        alignas(16) std::uint32_t parts[4];
    };
    static constexpr int kWords = kPiece * sizeof(Element) / sizeof(Word);
    static constexpr int kPerPart = 4 / sizeof(Element), kBits = 8 * sizeof(Element);

    Word words[kWords];

    __device__ __forceinline__ double operator[](int i) const {
        const std::uint32_t part = words[i / kPerPart / 4].parts[i / kPerPart % 4];
        if constexpr (sizeof(Element) == 4)
            return double(__builtin_bit_cast(float, part));
        else
            return double(widened(Element{static_cast<std::uint16_t>(part >> (i % kPerPart * kBits))}));
    }
    __device__ __forceinline__ void clear() {
        KVSCOPE_UNROLL
        for (int w = 0; w < kWords; ++w) words[w] = {};
    }
    __device__ __forceinline__ void readWords(const Element* x) {
        KVSCOPE_UNROLL
        for (int w = 0; w < kWords; ++w) words[w] = reinterpret_cast<const Word*>(x)[w];
    }
    /// The first `count` elements of x; the others stay 0.
    __device__ __forceinline__ void readElements(const Element* x, std::int64_t count) {
        KVSCOPE_UNROLL
        for (int i = 0; i < kPiece; ++i)
            if (i < count) words[i / kPerPart / 4].parts[i / kPerPart % 4] |= bitsOf(x[i]) << (i % kPerPart * kBits);
    }

private:
    static __device__ __forceinline__ std::uint32_t bitsOf(const Element& x) {
        if constexpr (sizeof(Element) == 4)
            return __builtin_bit_cast(std::uint32_t, x);
        else
            return x.bits;
    }
};

/// Whether every piece of eight elements begins at a multiple of 16 bytes.
inline bool hasStraightRows(const DeviceRows& rows) {
    const std::int64_t bytes = bytesOf(rows.type);
    return reinterpret_cast<std::uintptr_t>(rows.data) % 16 == 0 && rows.width * bytes % 16 == 0 &&
           rows.headStride * bytes % 16 == 0;
}

/// One head's rows below `end` as the calling warp reads them.
template <class Element, int Width> class RowReader {
public:
    using Split = RowSplit<Element, Width>;

    /// The pieces of a lane: of rows first + group, first + group + kGroups, ...; rows from the end on are zero.
    struct Batch {
        RowPiece<Element> pieces[Split::kRows];
    };

    __device__ __forceinline__ RowReader(const DeviceRows& rows, std::int64_t head, std::int64_t end, bool isStraight)
        : m_head(static_cast<const Element*>(rows.data) + head * rows.headStride), m_end(end),
          m_width(Width > 0 ? Width : rows.width), m_isStraight(Width > 0 || isStraight) {}

    __device__ __forceinline__ static int lane() { return static_cast<int>(threadIdx.x) % Split::kLanes; }
    /// The row with number r of the batch that this lane's group holds.
    __device__ __forceinline__ static std::int64_t rowOf(std::int64_t first, int r) {
        return first + r * Split::kGroups + static_cast<int>(threadIdx.x) % kWarp / Split::kLanes;
    }

    __device__ __forceinline__ void read(Batch& batch, std::int64_t first, std::int64_t turn) const {
        const std::int64_t column = turn * Split::kColumns + lane() * kPiece, left = m_width - column;
        KVSCOPE_UNROLL
        for (int r = 0; r < Split::kRows; ++r) {
            const std::int64_t row = rowOf(first, r);
            const Element* x = m_head + row * m_width + column;
            batch.pieces[r].clear();
            if (row >= m_end) continue;
            if (Width > 0 || (m_isStraight && left >= kPiece))
                batch.pieces[r].readWords(x);
            else
                batch.pieces[r].readElements(x, left);
        }
    }

    /// The calling warp's batches of the rows from `begin` on: add(batch, turn) for every turn of columns, then
    /// finish(batch, first row).
    template <class Add, class Finish>
    __device__ __forceinline__ void each(std::int64_t begin, int warps, const Add& add, const Finish& finish) const {
        const std::int64_t step = warps * Split::kRowsOfWarp, turns = Split::turnsOf(m_width);
        const std::int64_t mine = begin + static_cast<int>(threadIdx.x) / kWarp * Split::kRowsOfWarp;
        Batch ahead;
        read(ahead, mine, 0);
        for (std::int64_t passed = 0; begin + passed < m_end; passed += step)
            for (std::int64_t turn = 0; turn < turns; ++turn) {
                Batch batch = ahead;
                const bool isLast = turn + 1 == turns;
                read(ahead, mine + passed + (isLast ? step : 0), isLast ? 0 : turn + 1);
                add(batch, turn);
                if (isLast) finish(batch, mine + passed);
            }
    }

private:
    const Element* m_head;
    std::int64_t m_end, m_width;
    bool m_isStraight;
};

} // namespace kvscope::gpu
