// Ranks with ties: numbers that are equal share the mean of the places that they fill together.
#include "core/base/average_ranks.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace kvscope {

std::vector<double> averageRanks(std::span<const double> numbers) {
    std::vector<std::size_t> order(numbers.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::sort(order, [&](std::size_t a, std::size_t b) { return numbers[a] < numbers[b]; });
    std::vector<double> ranks(numbers.size());
    for (std::size_t first = 0; first < order.size();) {
        std::size_t end = first + 1;
        while (end < order.size() && numbers[order[end]] == numbers[order[first]]) ++end;
        const double rank = 0.5 * static_cast<double>(first + 1 + end);
        for (; first < end; ++first) ranks[order[first]] = rank;
    }
    return ranks;
}

} // namespace kvscope
