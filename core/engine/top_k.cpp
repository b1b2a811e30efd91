// Keeps the best rows of every head in linear time. A score and its row become one integer in the order (score
// descending, row ascending), so a partial sort of integers settles ties.
#include "core/base/error.h"
#include "core/base/parallel.h"
#include "core/engine/score_arithmetic.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <limits>
#include <string>

namespace kvscope {

namespace {

/// Smaller is better: the score's bits made monotone and inverted in the upper half, the row in the lower.
std::uint64_t rankKey(float score, std::int64_t row) {
    const auto bits = std::bit_cast<std::uint32_t>(score + 0.0F); // -0 becomes +0: they are equal
    const std::uint32_t ascending = bits & 0x80000000U ? ~bits : bits | 0x80000000U;
    return std::uint64_t{~ascending} << 32 | static_cast<std::uint64_t>(row);
}

void refuseNaN(const float* scores, std::int64_t m, std::int64_t head) {
    for (std::int64_t i = 0; i < m; ++i)
        if (std::isnan(scores[i]))
            throw Error({"the score of token " + std::to_string(i) + " in head " + std::to_string(head) +
                             " is not a number (NaN)",
                         "scores", "look for NaN or infinity in the capture's keys and queries"});
}

/// `first` and `last` fit into the count.
TopKHead bestRows(const float* scores, std::int64_t m, std::int64_t count, std::int64_t first, std::int64_t last) {
    TopKHead head;
    const std::int64_t free = count - first - last;
    std::vector<std::uint64_t> order;
    order.reserve(static_cast<std::size_t>(m));
    for (std::int64_t i = first; i < m - last; ++i) order.push_back(rankKey(scores[i], i));
    const auto scoreOf = [&](std::uint64_t key) { return scores[key & 0xffffffffU]; };
    head.margin = std::numeric_limits<float>::infinity();
    const auto end = order.begin() + free;
    std::uint64_t worstKept = free > 0 ? std::numeric_limits<std::uint64_t>::max() : 0; // no key is 0
    if (free > 0 && end != order.end()) {
        std::nth_element(order.begin(), end - 1, order.end()); // partitions the better rows from the worse
        worstKept = *(end - 1);
        const float kept = scoreOf(worstKept), evicted = scoreOf(*std::min_element(end, order.end()));
        head.margin = kept == evicted ? 0 : kept - evicted; // also for equal infinities
    }
    head.kept.reserve(static_cast<std::size_t>(count));
    for (std::int64_t i = 0; i < first; ++i) head.kept.push_back(static_cast<TokenIndex>(i));
    for (std::int64_t i = first; i < m - last; ++i) // in their order, where a sort of the kept ones would take longer
        if (rankKey(scores[i], i) <= worstKept) head.kept.push_back(static_cast<TokenIndex>(i));
    for (std::int64_t i = m - last; i < m; ++i) head.kept.push_back(static_cast<TokenIndex>(i));
    return head;
}

} // namespace

std::vector<TopKHead> topK(const HostTensor& scores, std::span<const std::int64_t> counts, std::int64_t protectFirst,
                           std::int64_t protectLast) {
    const std::int64_t heads = scores.shape[0], m = scores.shape[1];
    assert(std::ssize(counts) == heads);
    std::vector<TopKHead> result(static_cast<std::size_t>(heads));
    for (std::int64_t h = 0; h < heads; ++h) refuseNaN(scores.data.data() + h * m, m, h);
    forEachPiece(heads, [&](std::int64_t h) {
        const std::int64_t count = counts[h];
        assert(0 <= count && count <= m);
        const std::int64_t first = std::min({protectFirst, m, count});
        const std::int64_t last = std::min({protectLast, m - first, count - first});
        result[h] = bestRows(scores.data.data() + h * m, m, count, first, last);
    });
    return result;
}

} // namespace kvscope
