// Finds the tokens that BalanceKV's needle variant protects: keys that are anti-correlated with their block, and their
// neighbours.
#include "core/policies/balance/balance_needle.h"

#include "core/engine/engine.h"

#include <algorithm>

namespace kvscope {

NeedleMask findNeedles(const Engine& engine, const Tensor& keys, std::int64_t block, double threshold,
                       std::int64_t dilation, const Checkpoint& checkpoint) {
    const std::int64_t heads = keys.size(0), n = keys.size(1);
    const HostTensor rho = engine.download(engine.blockMeanProducts(keys, block, checkpoint));
    const HostTensor norms = engine.download(engine.rowNorms(keys, checkpoint.silent()));
    NeedleMask mask;
    for (std::int64_t h = 0; h < heads; ++h) {
        const auto begin = static_cast<std::ptrdiff_t>(h * n);
        double squares = 0;
        for (std::int64_t i = 0; i < n; ++i)
            squares += double{norms.data[static_cast<std::size_t>(h * n + i)]} *
                       double{norms.data[static_cast<std::size_t>(h * n + i)]};
        const double limit = n > 0 ? threshold * squares / static_cast<double>(n) : 0;
        std::vector<double>& values = mask.rho.emplace_back(rho.data.begin() + begin, rho.data.begin() + begin + n);
        std::vector<char>& raw = mask.raw.emplace_back();
        for (double& x : values) {
            x += 1e-8;
            raw.push_back(x > limit ? 0 : 1);
        }
        std::vector<char>& dilated = mask.dilated.emplace_back(static_cast<std::size_t>(n), char{0});
        for (std::int64_t i = 0; i < n; ++i)
            if (raw[static_cast<std::size_t>(i)] != 0)
                std::fill(dilated.begin() + std::max<std::int64_t>(0, i - dilation),
                          dilated.begin() + std::min(n, i + dilation + 1), char{1});
    }
    return mask;
}

} // namespace kvscope
