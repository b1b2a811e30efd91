#pragma once

#include "core/engine/attention_map.h"
#include "core/run/run.h"

#include <cstdint>
#include <memory>
#include <mutex>

namespace kvscope {

/// The softmax denominators of the rows of one attention map, as they become known: once a row's is, any part of that
/// row costs only the keys that are looked at. Kept with the capture, shared by all who draw that map. Thread-safe.
class RowLogSumExps {
public:
    /// `heads` and `rows` of AttentionMap::rowLogSumExps; nothing is known yet.
    RowLogSumExps(std::int64_t heads, std::int64_t rows);

    /// As AttentionMapInput takes them.
    HostTensor known() const;
    /// Rows [begin, end) are known for all heads.
    bool knows(std::int64_t begin, std::int64_t end) const;
    void learn(const HostTensor& sums);

private:
    mutable std::mutex m_mutex;
    HostTensor m_sums; ///< [heads, rows], NaN where unknown
};

/// Those of the map that `input` describes: its heads, mask and chunk of one layer.
std::shared_ptr<RowLogSumExps> rowLogSumExpsOf(const LayerRunner& runner,
                                               const std::shared_ptr<const CaptureReader>& capture, LayerIndex layer,
                                               const AttentionMapInput& input, const Checkpoint& checkpoint);

} // namespace kvscope
