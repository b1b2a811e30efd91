// Finds the nearest of the last few kept sets by counting tokens.
#include "core/engine/recent_sums.h"

#include <algorithm>
#include <iterator>

namespace kvscope {

namespace {

/// Number of tokens that are in only one of the ascending lists; stops counting at `most`.
std::int64_t differences(std::span<const TokenIndex> a, std::span<const TokenIndex> b, std::int64_t most) {
    std::int64_t count = 0;
    for (auto x = a.begin(), y = b.begin(); (x != a.end() || y != b.end()) && count < most;) {
        const bool first = y == b.end() || (x != a.end() && *x < *y), both = !first && x != a.end() && *x == *y;
        count += both ? 0 : 1;
        if (first || both) ++x;
        if (!first) ++y;
    }
    return count;
}

} // namespace

std::shared_ptr<const KeptSums> RecentSums::nearest(std::span<const WeightedSet> kept, std::int64_t most) const {
    const std::lock_guard lock(m_mutex);
    std::shared_ptr<const KeptSums> best;
    for (const auto& sums : m_sums) {
        if (sums->kept.size() != kept.size()) continue;
        std::int64_t count = 0;
        for (std::size_t set = 0; set < kept.size() && count < most; ++set)
            count += differences(sums->kept[set], kept[set].numerator, most - count);
        if (count < most) best = sums, most = count;
    }
    return best;
}

void RecentSums::replace(const KeptSums* before, std::shared_ptr<const KeptSums> sums) {
    const std::lock_guard lock(m_mutex);
    std::erase_if(m_sums, [before](const auto& old) { return old.get() == before; });
    m_sums.push_back(std::move(sums));
    if (m_sums.size() > kMost) m_sums.pop_front();
}

} // namespace kvscope
