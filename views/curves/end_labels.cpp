// Spreads overlapping labels. After subtracting its rank times the pitch, each label's position must not decrease: a
// least-squares problem solved by pooling adjacent violators.
#include "views/curves/end_labels.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace kvscope {

namespace {

struct Pool {
    double sum = 0, count = 0;
    double mean() const { return sum / count; }
};

} // namespace

std::vector<double> spreadLabels(const std::vector<double>& ends, double pitch, double top, double bottom,
                                 double farthest) {
    std::vector<std::size_t> order(ends.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return ends[a] < ends[b]; });
    const double steps = static_cast<double>(std::max<std::size_t>(1, ends.size()) - 1);
    if (top + steps * pitch > bottom) return {};
    std::vector<Pool> pools;
    for (std::size_t i = 0; i < order.size(); ++i) {
        pools.push_back({ends[order[i]] - pitch * static_cast<double>(i), 1});
        while (pools.size() > 1 && pools[pools.size() - 2].mean() > pools.back().mean()) {
            pools[pools.size() - 2] = {pools[pools.size() - 2].sum + pools.back().sum,
                                       pools[pools.size() - 2].count + pools.back().count};
            pools.pop_back();
        }
    }
    std::vector<double> heights(ends.size());
    std::size_t i = 0;
    for (const Pool& pool : pools)
        for (double left = pool.count; left > 0; --left, ++i)
            heights[order[i]] = std::clamp(pool.mean(), top, bottom - steps * pitch) + pitch * static_cast<double>(i);
    for (std::size_t label = 0; label < ends.size(); ++label)
        if (std::abs(heights[label] - ends[label]) > farthest) return {};
    return heights;
}

} // namespace kvscope
