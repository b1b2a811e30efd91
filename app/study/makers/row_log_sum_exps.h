#pragma once

#include "core/base/host_tensor.h"

#include <cassert>
#include <cmath>
#include <cstdint>
#include <mutex>
#include <vector>

namespace kvscope {

/// The log-sum-exps of one attention map's rows as far as known: a row with known lse costs only the shown keys.
/// Zooming and panning needs the same rows again: four bytes per row and head, cached with the capture, shared by all
/// who draw that map. Thread-safe.
class RowLogSumExps {
public:
    /// `heads` and `rows` of AttentionMap::rowLogSumExps; nothing is known yet.
    RowLogSumExps(std::int64_t heads, std::int64_t rows) : m_sums(HostTensor::filled({heads, rows}, NAN)) {}

    /// As AttentionMapInput takes them.
    HostTensor known() const {
        const std::lock_guard lock(m_mutex);
        return m_sums;
    }
    /// Whether rows [begin, end) are known for all heads.
    bool knows(std::int64_t begin, std::int64_t end) const {
        const std::lock_guard lock(m_mutex);
        const std::int64_t rows = m_sums.shape[1];
        for (std::int64_t head = 0; head < m_sums.shape[0]; ++head)
            for (std::int64_t row = begin; row < end; ++row)
                if (std::isnan(m_sums.data[head * rows + row])) return false;
        return true;
    }
    void learn(const HostTensor& sums) {
        const std::lock_guard lock(m_mutex);
        assert(sums.shape == m_sums.shape);
        for (std::size_t i = 0; i < sums.data.size(); ++i)
            if (std::isnan(m_sums.data[i])) m_sums.data[i] = sums.data[i];
    }

private:
    mutable std::mutex m_mutex;
    HostTensor m_sums; ///< [heads, rows], NaN where unknown
};

} // namespace kvscope
