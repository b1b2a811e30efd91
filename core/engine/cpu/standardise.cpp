// z-scores: how many standard deviations a score lies above the mean, so that scores of different kinds can be added.
// Mean and deviation are taken over one head or all of them, over all rows or chunk by chunk.
#include "core/engine/cpu/cpu_engine.h"

#include <algorithm>
#include <cmath>

namespace kvscope::cpu {

namespace {

/// Scores of some heads over rows [begin, end).
struct Patch {
    std::int64_t firstHead, endHead, begin, end;

    template <class Visit> void each(std::int64_t n, const Visit& visit) const {
        for (std::int64_t h = firstHead; h < endHead; ++h)
            for (std::int64_t i = begin; i < end; ++i)
                visit(static_cast<std::size_t>(h * n + i));
    }
    double count() const { return static_cast<double>((endHead - firstHead) * (end - begin)); }
};

void standardisePatch(std::vector<float>& scores, std::int64_t n, const Patch& patch, const Standardisation& how) {
    constexpr double kRounding = 0x1.0p-22; // four times that of a float
    double sum = 0, squares = 0, largest = 0;
    patch.each(n, [&](std::size_t i) {
        sum += double{scores[i]};
        largest = std::max(largest, std::abs(double{scores[i]}));
    });
    const double mean = sum / patch.count();
    patch.each(n, [&](std::size_t i) { squares += (double{scores[i]} - mean) * (double{scores[i]} - mean); });
    const double divisor = patch.count() - (how.sample ? 1 : 0);
    const double deviation = divisor > 0 ? std::sqrt(squares / divisor) : 0;
    // Scores that differ by their rounding only are constant: dividing by such a deviation would show noise (C3). NaN
    // is not constant; it stays, to be refused where a choice is made.
    const bool constant = deviation <= kRounding * largest;
    const double unit = std::max(deviation, how.floor);
    patch.each(
        n, [&](std::size_t i) { scores[i] = constant ? 0.0F : static_cast<float>((double{scores[i]} - mean) / unit); });
}

} // namespace

Tensor CpuEngine::standardise(const Tensor& scores, const Standardisation& how) const {
    const std::int64_t heads = scores.size(0), n = scores.size(1);
    std::vector<float> out = download(scores).data;
    const std::int64_t step = how.chunk > 0 ? how.chunk : std::max<std::int64_t>(1, n);
    std::vector<Patch> patches;
    for (std::int64_t h = 0; h < heads; h += how.jointly ? heads : 1)
        for (std::int64_t begin = 0; begin < n; begin += step)
            patches.push_back({h, how.jointly ? heads : h + 1, begin, std::min(n, begin + step)});
    m_workers.each(static_cast<std::int64_t>(patches.size()),
                   [&](std::int64_t i) { standardisePatch(out, n, patches[static_cast<std::size_t>(i)], how); });
    return makeTensor(scores.shape(), std::move(out));
}

} // namespace kvscope::cpu
