// The anchor of a head's keys (KeyDiff Eq. 8 and its ablations): the mean of the keys, the mean of the unit keys, or
// the coordinate-wise median.
#include "core/engine/cpu/cpu_engine.h"
#include "core/engine/cpu/row_blocks.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>

namespace kvscope::cpu {

namespace {

/// Coordinate-wise median of one column; `column` is reordered. An even count averages the two middle values.
float medianOf(std::vector<float>& column) {
    const auto middle = column.begin() + static_cast<std::ptrdiff_t>(column.size() / 2);
    std::nth_element(column.begin(), middle, column.end());
    if (column.size() % 2 == 1) return *middle;
    const float below = *std::max_element(column.begin(), middle);
    return static_cast<float>((double{below} + double{*middle}) / 2);
}

} // namespace

HostTensor CpuEngine::anchor(const Tensor& keys, AnchorKind kind, const Checkpoint& checkpoint) const {
    assert(keys.size(1) > 0);
    if (kind == AnchorKind::Median) {
        Progress progress(checkpoint, static_cast<double>(keys.size(0) * keys.size(2)));
        return medianAnchor(keys, progress);
    }
    Progress progress(checkpoint, static_cast<double>(keys.size(0) * blocksPerHead(keys.size(1))));
    return meanAnchor(keys, kind == AnchorKind::NormalisedMean, progress);
}

HostTensor CpuEngine::meanAnchor(const Tensor& keys, bool normalised, Progress& progress) const {
    const std::int64_t heads = keys.size(0), n = keys.size(1), d = keys.size(2), perHead = blocksPerHead(n);
    // One partial sum per block, added in block order below, so that rounding does not depend on the threads.
    std::vector<double> partial(static_cast<std::size_t>(heads * perHead * d));
    eachRowBlock(m_workers, keys, progress, [&](const RowBlock& block) {
        std::array<double, kRowsPerBlock> factors;
        const std::int64_t count = block.end - block.begin;
        if (normalised) {
            m_kernels.rowProducts(block.rows, count, d, nullptr, nullptr, factors.data());
            for (std::int64_t r = 0; r < count; ++r) { // 1 / ||k||; a zero key contributes zero (K4)
                double& f = factors[r];
                f = f > 0 ? 1 / std::sqrt(f) : f;
            }
        }
        double* sum = partial.data() + (block.head * perHead + block.begin / kRowsPerBlock) * d;
        m_kernels.addRows(block.rows, count, d, normalised ? factors.data() : nullptr, sum);
    });
    std::vector<float> out(static_cast<std::size_t>(heads * d));
    for (std::int64_t h = 0; h < heads; ++h)
        for (std::int64_t c = 0; c < d; ++c) {
            double sum = 0;
            for (std::int64_t b = 0; b < perHead; ++b) sum += partial[(h * perHead + b) * d + c];
            out[h * d + c] = static_cast<float>(sum / static_cast<double>(n));
        }
    return {{heads, d}, std::move(out)};
}

HostTensor CpuEngine::medianAnchor(const Tensor& keys, Progress& progress) const {
    const std::int64_t heads = keys.size(0), n = keys.size(1), d = keys.size(2);
    std::vector<float> out(static_cast<std::size_t>(heads * d));
    for (std::int64_t h = 0; h < heads; ++h) {
        const HeadRows rows(keys, h, progress.checkpoint());
        m_workers.each(d, [&](std::int64_t c) {
            std::vector<float> column(static_cast<std::size_t>(n));
            for (std::int64_t i = 0; i < n; ++i) column[i] = rows.data()[i * d + c];
            out[h * d + c] = medianOf(column);
            progress.advance(1);
        });
    }
    return {{heads, d}, std::move(out)};
}

} // namespace kvscope::cpu
