// Zooming and panning an attention map needs the same rows' lse again: four bytes per row and head, cached.
#include "app/study/makers/row_log_sum_exps.h"

#include "core/run/stage_cache.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cassert>
#include <cmath>

namespace kvscope {

RowLogSumExps::RowLogSumExps(std::int64_t heads, std::int64_t rows)
    : m_sums{{heads, rows}, std::vector<float>(static_cast<std::size_t>(heads * rows), NAN)} {}

HostTensor RowLogSumExps::known() const {
    const std::lock_guard lock(m_mutex);
    return m_sums;
}

bool RowLogSumExps::knows(std::int64_t begin, std::int64_t end) const {
    const std::lock_guard lock(m_mutex);
    const std::int64_t rows = m_sums.shape[1];
    for (std::int64_t head = 0; head < m_sums.shape[0]; ++head)
        for (std::int64_t row = begin; row < end; ++row)
            if (std::isnan(m_sums.data[head * rows + row])) return false;
    return true;
}

void RowLogSumExps::learn(const HostTensor& sums) {
    const std::lock_guard lock(m_mutex);
    assert(sums.shape == m_sums.shape);
    for (std::size_t i = 0; i < sums.data.size(); ++i)
        if (std::isnan(m_sums.data[i])) m_sums.data[i] = sums.data[i];
}

std::shared_ptr<RowLogSumExps> rowLogSumExpsOf(const LayerRunner& runner,
                                               const std::shared_ptr<const CaptureReader>& capture, LayerIndex layer,
                                               const AttentionMapInput& input, const Checkpoint& checkpoint) {
    const std::string key =
        fmt::format("{}row sums|{}|{}|{}|{}", runner.keyOf(capture), layer.value, static_cast<int>(input.mask),
                    input.mask == MapMask::Chunks ? input.chunk : 0, fmt::join(input.queryHeads, ","));
    const auto heads = static_cast<std::int64_t>(input.queryHeads.size()), rows = input.queries.size(1);
    return *runner.cache().get<std::shared_ptr<RowLogSumExps>>(key, checkpoint, [&] {
        return StageCache::Made<std::shared_ptr<RowLogSumExps>>{std::make_shared<RowLogSumExps>(heads, rows),
                                                                static_cast<std::size_t>(heads * rows) * sizeof(float)};
    });
}

} // namespace kvscope
