// Finds the tokens that BalanceKV's needle variant protects: keys that are anti-correlated with their block, and their
// neighbours.
#include "core/policies/balance/balance_needle.h"

#include "core/engine/engine.h"

#include <algorithm>

namespace kvscope {

namespace {

/// [count]: <k_i, (sum of the rows) / block> of `count` rows [d], added in their order in double, rounded to float
/// once.
void blockMeanProducts(const float* rows, std::int64_t count, std::int64_t d, std::int64_t block, double* out) {
    std::vector<double> mean(static_cast<std::size_t>(d));
    for (std::int64_t r = 0; r < count; ++r)
        for (std::int64_t c = 0; c < d; ++c) mean[c] += double{rows[r * d + c]};
    for (double& x : mean) x /= static_cast<double>(block);
    for (std::int64_t r = 0; r < count; ++r) {
        double sum = 0;
        for (std::int64_t c = 0; c < d; ++c) sum += double{rows[r * d + c]} * mean[c];
        out[r] = double{static_cast<float>(sum)};
    }
}

} // namespace

NeedleMask findNeedles(const Engine& engine, const Tensor& keys, std::int64_t block, double threshold,
                       std::int64_t dilation, const Checkpoint& checkpoint) {
    const std::int64_t heads = keys.size(0), n = keys.size(1), d = keys.size(2);
    const HostTensor rows = engine.download(keys);
    const HostTensor norms = engine.rowNorms(keys, checkpoint.silent());
    NeedleMask mask;
    for (std::int64_t h = 0; h < heads; ++h) {
        checkpoint.at(static_cast<double>(h), static_cast<double>(heads));
        double squares = 0;
        for (std::int64_t i = 0; i < n; ++i) squares += double{norms.data[h * n + i]} * double{norms.data[h * n + i]};
        const double limit = n > 0 ? threshold * squares / static_cast<double>(n) : 0;
        std::vector<double>& values = mask.rho.emplace_back(static_cast<std::size_t>(n));
        for (std::int64_t first = 0; first < n; first += block)
            blockMeanProducts(rows.data.data() + (h * n + first) * d, std::min(block, n - first), d, block,
                              values.data() + first);
        std::vector<char>& raw = mask.raw.emplace_back();
        for (double& x : values) {
            x += 1e-8;
            raw.push_back(x > limit ? 0 : 1);
        }
        std::vector<char>& dilated = mask.dilated.emplace_back(static_cast<std::size_t>(n), char{0});
        for (std::int64_t i = 0; i < n; ++i)
            if (raw[i] != 0)
                std::fill(dilated.begin() + std::max<std::int64_t>(0, i - dilation),
                          dilated.begin() + std::min(n, i + dilation + 1), char{1});
    }
    return mask;
}

} // namespace kvscope
