#pragma once

#include "core/engine/cpu/kernels.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace kvscope::cpu {

/// Asks for large pages: with small pages, a third of the time for long rows went into page faults.
void useLargePages(void* memory, std::size_t bytes);

/// Memory that starts at a cache line, so that no vector crosses two lines. Not zeroed.
template <class Real> class AlignedMemory {
public:
    /// The old numbers are lost when the memory grows.
    Real* atLeast(std::int64_t count) {
        if (count > m_size) {
            m_lines.reset();
            m_lines.reset(new Line[static_cast<std::size_t>((count + kPerLine - 1) / kPerLine)]);
            m_size = count;
            useLargePages(m_lines.get(), static_cast<std::size_t>(count) * sizeof(Real));
        }
        return m_size > 0 ? m_lines[0].numbers : nullptr;
    }
    Real* data() { return m_lines[0].numbers; }
    const Real* data() const { return m_lines[0].numbers; }

private:
    static constexpr std::int64_t kPerLine = 64 / sizeof(Real);
    struct alignas(64) Line {
        Real numbers[kPerLine];
    };
    std::int64_t m_size = 0;
    std::unique_ptr<Line[]> m_lines;
};

/// Prefetches numbers that are read next, so that they are fetched while earlier ones are used. The range may exceed
/// the array: a prefetch never faults.
template <class Real> void prefetch(const Real* numbers, std::int64_t count) {
    constexpr std::int64_t kPerLine = 64 / sizeof(Real);
    for (std::int64_t i = 0; i < count; i += kPerLine) __builtin_prefetch(numbers + i, 0, 2); // into L2
}

/// Up to 32 rows side by side in double, [d, lanes], padded with zeros to a multiple of 8 lanes.
class LaneBlock {
public:
    LaneBlock(const std::vector<const float*>& rows, std::int64_t d);

    std::int64_t lanes() const { return m_lanes; }
    /// out[k][lane] = sum over c of row[lane][c] * factors[k][c], factors [count, d].
    Product against(const double* factors, std::int64_t count, double* out) const;

private:
    std::int64_t m_depth, m_lanes;
    AlignedMemory<double> m_values;
};

/// Rows of keys or values in double, one panel at a time, which fits into the L1 cache; for several blocks of lanes one
/// tile at a time, which fits into the L2 cache with them.
inline constexpr std::int64_t kPanelRows = 24, kTileRows = 4 * kPanelRows;
/// Blocks that share widened keys and values: their sums and queries fit into the L2 cache beside these.
inline constexpr std::size_t kMostBlocks = 4;
/// How many of `blocks` over so many keys to compute at once: each thread has groups to do, logits take at most 64 MiB.
std::size_t blocksAtOnce(std::int64_t blocks, std::int64_t keys, int threads);
inline constexpr double kLogitsPerStep = 1 << 17; ///< some milliseconds between checkpoints
inline constexpr std::int64_t stepOf(std::size_t blocks) { return blocks > 1 ? kTileRows : kPanelRows; }

class Panel {
public:
    Panel(const Kernels& kernels, std::int64_t d) : m_kernels(kernels), m_depth(d) {}

    /// Rows first .. first + count - 1 of [*, d]; with indices, rows indices[0 .. count - 1].
    const double* fill(const float* rows, std::int64_t first, std::int64_t count, const std::int32_t* indices);

private:
    const Kernels& m_kernels;
    std::int64_t m_depth;
    AlignedMemory<double> m_values;
};

} // namespace kvscope::cpu
