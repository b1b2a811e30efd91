// Nearest rows by products in float. Of shifted rows a, half a squared distance is |a_i|^2 / 2 + |a_j|^2 / 2 - a_i.a_j;
// the first term is the same for all j. The error of the rest comes from rounding the shifted rows, their product and
// two sums: below (d / 2 + 5) 2^-24 of |a_i|^2 + |a_j|^2, since |a_i| |a_j| is at most half of that.
#include "core/engine/cpu/nearest_rows.h"

#include "core/engine/cpu/lane_block.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <limits>
#include <utility>

namespace kvscope::cpu {

namespace {

constexpr double kSmallest = 1e-30; // absolute error for shifted rows that floats round more coarsely

std::vector<double> meanRow(const HostTensor& rows) {
    const std::int64_t n = rows.shape[0], d = rows.shape[1];
    std::vector<double> mean(static_cast<std::size_t>(d));
    for (std::int64_t i = 0; i < n; ++i)
        for (std::int64_t c = 0; c < d; ++c)
            mean[c] += static_cast<double>(rows.data[i * d + c]) / static_cast<double>(n);
    return mean;
}

/// The power of two that scales the largest coordinate to 1/2 to 1.
double unitOf(const HostTensor& rows, const std::vector<double>& mean) {
    const auto d = std::ssize(mean);
    double largest = 0;
    for (std::int64_t i = 0; i < std::ssize(rows.data); ++i)
        largest = std::max(largest, std::abs(static_cast<double>(rows.data[i]) - mean[i % d]));
    int exponent = 0;
    std::frexp(largest, &exponent);
    return std::ldexp(1.0, -exponent);
}

} // namespace

/// The rows that may be among the nearest of one row, while all rows are scanned.
class NearestRows::Candidates {
public:
    Candidates(std::size_t count, float error) : m_wanted(count), m_error(error), m_room(2 * count + 64) {}

    float most() const { return m_most; }

    void add(std::int32_t row, float lower, float upper) {
        m_found.push_back({lower, upper, row});
        if (m_found.size() >= m_room) prune();
    }

    /// Drops the rows that cannot be among the `count` nearest.
    void prune() {
        if (m_found.size() < m_wanted) return;
        const auto last = m_found.begin() + static_cast<std::ptrdiff_t>(m_wanted) - 1;
        std::nth_element(m_found.begin(), last, m_found.end(),
                         [](const Found& a, const Found& b) { return a.upper < b.upper; });
        m_most = last->upper + m_error;
        std::erase_if(m_found, [this](const Found& found) { return found.lower > m_most; });
        m_room = std::max(m_room, 2 * m_found.size());
    }

    std::vector<std::int32_t> rows() const {
        std::vector<std::int32_t> rows;
        for (const Found& found : m_found) rows.push_back(found.row);
        return rows;
    }

private:
    struct Found {
        float lower, upper; ///< of half the squared distance, without the terms of the row itself
        std::int32_t row;
    };

    std::size_t m_wanted;
    float m_error; ///< twice the row's own part of the error
    float m_most = std::numeric_limits<float>::infinity();
    std::size_t m_room;
    std::vector<Found> m_found;
};

NearestRows::NearestRows(const Kernels& kernels, const HostTensor& rows)
    : m_kernels(kernels), m_rows(rows), m_count(rows.shape[0]), m_depth(rows.shape[1]),
      m_error(1.01 * (static_cast<double>(m_depth) / 2 + 12) * 0x1p-24), m_shifted(rows.data.size()) {
    const std::vector<double> mean = meanRow(rows);
    const double unit = unitOf(rows, mean);
    for (std::int64_t i = 0; i < m_count; ++i) {
        float* shifted = m_shifted.data() + i * m_depth;
        m_kernels.shiftedRow(rows.data.data() + i * m_depth, mean.data(), unit, m_depth, shifted);
        double square = 0;
        for (std::int64_t c = 0; c < m_depth; ++c) square += static_cast<double>(shifted[c]) * shifted[c];
        const double error = m_error * square + kSmallest;
        m_lowest.push_back(static_cast<float>(square / 2 - error));
        m_errors.push_back(static_cast<float>(error));
    }
}

std::vector<std::vector<Neighbour>> NearestRows::of(std::int64_t begin, std::int64_t end, std::size_t count) const {
    assert(begin < end && end - begin <= kMaxLanes && std::cmp_less(count, m_count));
    std::vector<float> lanes(static_cast<std::size_t>(m_depth * kMaxLanes));
    std::array<float, kMaxLanes> most;
    most.fill(-std::numeric_limits<float>::infinity()); // padding lanes find nothing
    std::vector<Candidates> found;
    for (std::int64_t i = begin; i < end; ++i) {
        for (std::int64_t c = 0; c < m_depth; ++c) lanes[c * kMaxLanes + i - begin] = m_shifted[i * m_depth + c];
        found.emplace_back(count, 2 * m_errors[i]);
        most[i - begin] = found.back().most();
    }
    std::array<float, kPanelRows * kMaxLanes> products;
    std::array<std::int32_t, kMaxLanes + 1> hit;
    const auto look = [&](std::int64_t first, std::int64_t last) {
        for (std::int64_t from = first; from < last; from += kPanelRows) {
            const std::int64_t width = std::min(kPanelRows, last - from);
            m_kernels.fastLogits({.lanes = lanes.data(),
                                  .keys = m_shifted.data() + from * m_depth,
                                  .terms = width,
                                  .depth = m_depth,
                                  .scaling = 1,
                                  .softcap = 0,
                                  .logits = products.data()});
            for (std::int64_t k = 0; k < width; ++k) {
                const float* product = products.data() + k * kMaxLanes;
                const float lowest = m_lowest[from + k];
                bool any = false;
                for (std::int64_t lane = 0; lane < kMaxLanes; ++lane) any |= lowest - product[lane] <= most[lane];
                if (!any) continue;
                std::int64_t hits = 0;
                for (std::int64_t lane = 0; lane < kMaxLanes; ++lane) {
                    hit[hits] = static_cast<std::int32_t>(lane);
                    hits += lowest - product[lane] <= most[lane];
                }
                for (std::int64_t h = 0; h < hits; ++h) {
                    const std::int64_t lane = hit[h];
                    const float lower = lowest - product[lane];
                    if (from + k == begin + lane) continue;
                    found[lane].add(static_cast<std::int32_t>(from + k), lower, lower + 2 * m_errors[from + k]);
                    most[lane] = found[lane].most();
                }
            }
        }
    };
    look(begin, m_count); // keys of neighbouring tokens are often near
    look(0, begin);
    std::vector<std::vector<Neighbour>> near;
    for (std::int64_t i = begin; i < end; ++i) {
        found[i - begin].prune();
        near.push_back(nearest(found[i - begin].rows(), i, count));
    }
    return near;
}

std::vector<Neighbour> NearestRows::nearest(const std::vector<std::int32_t>& candidates, std::int64_t row,
                                            std::size_t count) const {
    constexpr std::size_t kAtOnce = 8;
    const float* own = m_rows.data.data() + row * m_depth;
    std::vector<Neighbour> near;
    for (std::size_t first = 0; first < candidates.size(); first += kAtOnce) {
        std::array<const float*, kAtOnce> others;
        std::array<double, kAtOnce> squares{};
        for (std::size_t i = 0; i < kAtOnce; ++i)
            others[i] = m_rows.data.data() + candidates[std::min(first + i, candidates.size() - 1)] * m_depth;
        for (std::int64_t c = 0; c < m_depth; ++c)
            for (std::size_t i = 0; i < kAtOnce; ++i) {
                const double difference = static_cast<double>(others[i][c]) - static_cast<double>(own[c]);
                squares[i] += difference * difference;
            }
        for (std::size_t i = 0; i < std::min(kAtOnce, candidates.size() - first); ++i)
            near.push_back({squares[i], candidates[first + i]});
    }
    std::nth_element(near.begin(), near.begin() + static_cast<std::ptrdiff_t>(count) - 1, near.end());
    near.resize(count);
    std::sort(near.begin(), near.end());
    return near;
}

} // namespace kvscope::cpu
