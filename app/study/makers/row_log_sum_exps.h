#pragma once

#include "core/engine/attention_map.h"
#include "core/run/run.h"

#include <cstdint>
#include <memory>
#include <mutex>

namespace kvscope {

/// The log-sum-exps of one attention map's rows as far as known: a row with known lse costs only the shown keys. Cached
/// with the capture, shared by all who draw that map. Thread-safe.
class RowLogSumExps {
public:
    /// `heads` and `rows` of AttentionMap::rowLogSumExps; nothing is known yet.
    RowLogSumExps(std::int64_t heads, std::int64_t rows);

    /// As AttentionMapInput takes them.
    HostTensor known() const;
    /// Whether rows [begin, end) are known for all heads.
    bool knows(std::int64_t begin, std::int64_t end) const;
    void learn(const HostTensor& sums);

private:
    mutable std::mutex m_mutex;
    HostTensor m_sums; ///< [heads, rows], NaN where unknown
};

/// The cache entry of the map that `input` describes: its heads, mask and chunk of one layer.
std::shared_ptr<RowLogSumExps> rowLogSumExpsOf(const LayerRunner& runner,
                                               const std::shared_ptr<const CaptureReader>& capture, LayerIndex layer,
                                               const AttentionMapInput& input, const Checkpoint& checkpoint);

} // namespace kvscope
