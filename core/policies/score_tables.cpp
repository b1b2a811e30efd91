// Host-side operations on small score tables [H, n].
#include "core/policies/score_tables.h"

#include "core/engine/engine.h"

#include <algorithm>
#include <cassert>

namespace kvscope {

Tensor padColumns(const Engine& engine, const Tensor& scores, std::int64_t heads, std::int64_t rows, float value) {
    HostTensor padded{{heads, rows}, {}};
    padded.data.assign(static_cast<std::size_t>(heads * rows), value);
    if (scores.empty())
        return engine.upload(std::move(padded));
    assert(scores.size(0) == heads && scores.size(1) <= rows);
    const HostTensor given = engine.download(scores);
    const std::int64_t columns = scores.size(1);
    for (std::int64_t h = 0; h < heads; ++h)
        std::copy_n(given.data.begin() + h * columns, columns, padded.data.begin() + h * rows);
    return engine.upload(std::move(padded));
}

Tensor repeatHead(const Engine& engine, const Tensor& scores, std::int64_t heads) {
    assert(scores.size(0) == 1);
    const HostTensor one = engine.download(scores);
    HostTensor all{{heads, scores.size(1)}, {}};
    for (std::int64_t h = 0; h < heads; ++h)
        all.data.insert(all.data.end(), one.data.begin(), one.data.end());
    return engine.upload(std::move(all));
}

} // namespace kvscope
