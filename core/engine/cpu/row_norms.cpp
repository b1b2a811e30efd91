// Key norms: square roots of the sums of squares.
#include "core/engine/cpu/cpu_engine.h"
#include "core/engine/cpu/row_blocks.h"

#include <array>
#include <cmath>

namespace kvscope::cpu {

HostTensor CpuEngine::rowNorms(const Tensor& keys, const Checkpoint& checkpoint) const {
    const std::int64_t heads = keys.size(0), n = keys.size(1), d = keys.size(2);
    std::vector<float> out(static_cast<std::size_t>(heads * n));
    Progress progress(checkpoint, static_cast<double>(heads * blocksPerHead(n)));
    eachRowBlock(m_workers, keys, progress, [&](const RowBlock& block) {
        std::array<double, kRowsPerBlock> squares;
        const std::int64_t count = block.end - block.begin;
        m_kernels.rowProducts(block.rows, count, d, nullptr, nullptr, squares.data());
        float* to = out.data() + block.head * n + block.begin;
        for (std::int64_t r = 0; r < count; ++r) to[r] = static_cast<float>(std::sqrt(squares[r]));
    });
    return {{heads, n}, std::move(out)};
}

} // namespace kvscope::cpu
