// How much every key agrees with the mean key of its block: BalanceKV's detector of needles, which point away from it.
#include "core/engine/cpu/cpu_engine.h"

#include <algorithm>
#include <cassert>

namespace kvscope::cpu {

namespace {

void oneBlock(const float* rows, std::int64_t count, std::int64_t d, std::int64_t block, float* out) {
    std::vector<double> mean(static_cast<std::size_t>(d));
    for (std::int64_t r = 0; r < count; ++r)
        for (std::int64_t c = 0; c < d; ++c)
            mean[static_cast<std::size_t>(c)] += double{rows[r * d + c]};
    for (double& x : mean)
        x /= static_cast<double>(block);
    for (std::int64_t r = 0; r < count; ++r) {
        double sum = 0;
        for (std::int64_t c = 0; c < d; ++c)
            sum += double{rows[r * d + c]} * mean[static_cast<std::size_t>(c)];
        out[r] = static_cast<float>(sum);
    }
}

} // namespace

Tensor CpuEngine::blockMeanProducts(const Tensor& keys, std::int64_t block, const Checkpoint& checkpoint) const {
    assert(block > 0);
    const std::int64_t heads = keys.size(0), n = keys.size(1), d = keys.size(2);
    const std::int64_t perHead = (n + block - 1) / block;
    std::vector<float> out(static_cast<std::size_t>(heads * n));
    Progress progress(checkpoint, static_cast<double>(std::max<std::int64_t>(1, heads * perHead)));
    const TensorView view = viewOf(keys);
    m_workers.each(heads * perHead, [&](std::int64_t piece) {
        const std::int64_t head = piece / perHead, begin = piece % perHead * block;
        oneBlock(view.head(head) + begin * d, std::min(block, n - begin), d, block, out.data() + head * n + begin);
        progress.advance(1);
    });
    return makeTensor({heads, n}, std::move(out));
}

} // namespace kvscope::cpu
