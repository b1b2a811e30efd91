// Cheap primitives on scores [H, n]: pooling along time, reduction over the query heads of a group, scaling, products
// and sums of two scores.
#include "core/engine/cpu/cpu_engine.h"

#include <algorithm>
#include <cassert>
#include <limits>

namespace kvscope::cpu {

namespace {

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

/// Larger of the two; NaN wins, so that it is refused where a choice is made.
double larger(double a, double b) { return a >= b || a != a ? a : b; }

double pooledAt(const float* scores, std::int64_t n, std::int64_t i, PoolKind kind, std::int64_t width) {
    const std::int64_t begin = std::max<std::int64_t>(0, i - width / 2), end = std::min(n, i + width / 2 + 1);
    double sum = 0, top = kMinusInfinity;
    for (std::int64_t j = begin; j < end; ++j) {
        sum += double{scores[j]};
        top = larger(top, double{scores[j]});
    }
    // The divisor stays the full width at the borders, as average pooling with zero padding has it.
    return kind == PoolKind::Max ? top : sum / static_cast<double>(width);
}

double reducedAt(const TensorView& scores, const std::vector<std::int64_t>& heads, std::int64_t i, GroupRule rule) {
    double sum = 0, top = kMinusInfinity;
    for (std::int64_t h : heads) {
        sum += double{scores.head(h)[i]};
        top = larger(top, double{scores.head(h)[i]});
    }
    return rule == GroupRule::Max ? top : rule == GroupRule::Sum ? sum : sum / static_cast<double>(heads.size());
}

template <class Formula> std::vector<float> combined(HostTensor a, const HostTensor& b, const Formula& formula) {
    assert(a.shape == b.shape);
    std::transform(a.data.begin(), a.data.end(), b.data.begin(), a.data.begin(),
                   [&](float x, float y) { return static_cast<float>(formula(double{x}, double{y})); });
    return std::move(a.data);
}

} // namespace

Tensor CpuEngine::blend(const Tensor& a, const Tensor& b, double weight) const {
    return makeTensor(a.shape(),
                      combined(download(a), download(b), [&](double x, double y) { return x + weight * y; }));
}

Tensor CpuEngine::multiply(const Tensor& a, const Tensor& b) const {
    return makeTensor(a.shape(), combined(download(a), download(b), [](double x, double y) { return x * y; }));
}

Tensor CpuEngine::pool(const Tensor& scores, PoolKind kind, std::int64_t width) const {
    assert(width % 2 == 1);
    const std::int64_t heads = scores.size(0), n = scores.size(1);
    std::vector<float> out(static_cast<std::size_t>(heads * n));
    const TensorView view = viewOf(scores);
    m_workers.each(heads, [&](std::int64_t h) {
        for (std::int64_t i = 0; i < n; ++i)
            out[static_cast<std::size_t>(h * n + i)] = static_cast<float>(pooledAt(view.head(h), n, i, kind, width));
    });
    return makeTensor({heads, n}, std::move(out));
}

Tensor CpuEngine::reduceGroups(const Tensor& scores, std::span<const std::int32_t> gqaGroupOf, std::int64_t numKvHeads,
                               GroupRule rule) const {
    assert(static_cast<std::int64_t>(gqaGroupOf.size()) == scores.size(0));
    const std::int64_t n = scores.size(1);
    std::vector<float> out(static_cast<std::size_t>(numKvHeads * n));
    const TensorView view = viewOf(scores);
    m_workers.each(numKvHeads, [&](std::int64_t kv) {
        std::vector<std::int64_t> heads;
        for (std::size_t h = 0; h < gqaGroupOf.size(); ++h)
            if (gqaGroupOf[h] == kv)
                heads.push_back(static_cast<std::int64_t>(h));
        assert(!heads.empty());
        for (std::int64_t i = 0; i < n; ++i)
            out[static_cast<std::size_t>(kv * n + i)] = static_cast<float>(reducedAt(view, heads, i, rule));
    });
    return makeTensor({numKvHeads, n}, std::move(out));
}

Tensor CpuEngine::scale(const Tensor& scores, double factor) const {
    HostTensor result = download(scores);
    for (float& x : result.data)
        x = static_cast<float>(factor * double{x});
    return upload(std::move(result));
}

} // namespace kvscope::cpu
