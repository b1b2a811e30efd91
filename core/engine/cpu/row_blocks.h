#pragma once

#include "core/engine/cpu/cpu_tensor.h"
#include "core/engine/cpu/workers.h"

#include <algorithm>

namespace kvscope::cpu {

/// Rows of one head, a piece of work of about a tenth of a millisecond.
struct RowBlock {
    std::int64_t head, begin, end;
    const float* rows; ///< [end - begin, d]
};

inline constexpr std::int64_t kRowsPerBlock = 1024;

inline std::int64_t blocksPerHead(std::int64_t rows) { return (rows + kRowsPerBlock - 1) / kRowsPerBlock; }

/// Calls work(RowBlock) for all rows of all heads of keys [H, n, d].
template <class Work>
void eachRowBlock(const Workers& workers, const Tensor& keys, Progress& progress, const Work& work) {
    const std::int64_t n = keys.size(1), perHead = blocksPerHead(n);
    workers.each(keys.size(0) * perHead, [&](std::int64_t piece) {
        const std::int64_t head = piece / perHead, begin = piece % perHead * kRowsPerBlock;
        const std::int64_t end = std::min(n, begin + kRowsPerBlock);
        const HeadRows rows(keys, head, begin, end);
        work(RowBlock{head, begin, end, rows.data()});
        progress.advance(1);
    });
}

} // namespace kvscope::cpu
