// Suggests the right name for a mistyped one, by edit distance (names are short, so plain dynamic programming
// suffices).
#include "core/base/nearest_name.h"

#include <cctype>

namespace kvscope {

namespace {

char lower(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }

// Optimal string alignment: cost[i][j] is the distance between the first i and the first j characters.
std::size_t editDistance(std::string_view a, std::string_view b) {
    std::vector<std::vector<std::size_t>> cost(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
    for (std::size_t i = 0; i <= a.size(); ++i) cost[i][0] = i;
    for (std::size_t j = 0; j <= b.size(); ++j) cost[0][j] = j;
    for (std::size_t i = 1; i <= a.size(); ++i) {
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const bool same = lower(a[i - 1]) == lower(b[j - 1]);
            cost[i][j] = std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1, cost[i - 1][j - 1] + (same ? 0 : 1)});
            const bool swapped =
                i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) && lower(a[i - 2]) == lower(b[j - 1]);
            if (swapped) cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
        }
    }
    return cost[a.size()][b.size()];
}

} // namespace

std::string nearestName(std::string_view typed, const std::vector<std::string>& candidates) {
    std::string nearest;
    std::size_t smallest = 0;
    for (const std::string& candidate : candidates) {
        const std::size_t distance = editDistance(typed, candidate);
        const bool near = 3 * distance <= std::max(typed.size(), candidate.size());
        if (near && (nearest.empty() || distance < smallest)) {
            nearest = candidate;
            smallest = distance;
        }
    }
    return nearest;
}

std::string suggestName(std::string_view typed, const std::vector<std::string>& candidates) {
    const std::string nearest = nearestName(typed, candidates);
    if (!nearest.empty()) return "Did you mean '" + nearest + "'?";
    std::string known;
    for (const std::string& candidate : candidates) known += (known.empty() ? "Known: " : ", ") + candidate;
    return known.empty() ? "There is none" : known;
}

} // namespace kvscope
