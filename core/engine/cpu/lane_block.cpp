// Row layouts for the kernels: a block of lanes on one side of a product, a small panel of rows on the other, both
// widened to double once.
#include "core/engine/cpu/lane_block.h"

#include <sys/mman.h>

#include <algorithm>
#include <cassert>

namespace kvscope::cpu {

void useLargePages(void* memory, std::size_t bytes) {
    constexpr std::size_t kPage = 4096, kLargePage = std::size_t{2} << 20;
    if (bytes < 4 * kLargePage) return;
    const auto before = reinterpret_cast<std::uintptr_t>(memory) % kPage, skipped = (kPage - before) % kPage;
    madvise(static_cast<char*>(memory) + skipped, bytes - skipped, MADV_HUGEPAGE); // the kernel may refuse
}

LaneBlock::LaneBlock(const std::vector<const float*>& rows, std::int64_t d) : m_depth(d) {
    const auto count = static_cast<std::int64_t>(rows.size());
    assert(count > 0 && count <= kMaxLanes);
    m_lanes = (count + kLaneStep - 1) / kLaneStep * kLaneStep;
    double* to = m_values.atLeast(d * m_lanes);
    if (count < m_lanes) std::fill(to, to + d * m_lanes, 0.0);
    for (std::int64_t lane = 0; lane < count; ++lane) // row by row, as they lie in memory
        for (std::int64_t c = 0; c < d; ++c) to[c * m_lanes + lane] = double{rows[lane][c]};
}

Product LaneBlock::against(const double* factors, std::int64_t count, double* out) const {
    return {.lanes = m_values.data(),
            .laneStride = m_lanes,
            .laneCount = m_lanes,
            .factors = factors,
            .factorCount = count,
            .factorStride = m_depth,
            .depthStride = 1,
            .depth = m_depth,
            .out = out,
            .outStride = m_lanes,
            .accumulate = false};
}

std::size_t blocksAtOnce(std::int64_t blocks, std::int64_t keys, int threads) {
    const std::int64_t bytes = std::max<std::int64_t>(1, keys) * kMaxLanes * std::int64_t{sizeof(double)};
    return static_cast<std::size_t>(
        std::clamp<std::int64_t>(std::min(blocks / (4 * threads), (1 << 26) / bytes), 1, kMostBlocks));
}

const double* Panel::fill(const float* rows, std::int64_t first, std::int64_t count, const std::int32_t* indices) {
    double* to = m_values.atLeast(std::max(count, kPanelRows) * m_depth);
    for (std::int64_t r = 0; r < count; ++r) {
        const float* row = rows + (indices ? indices[r] : first + r) * m_depth;
        m_kernels.widen(row, m_depth, to);
        to += m_depth;
    }
    return m_values.data();
}

} // namespace kvscope::cpu
