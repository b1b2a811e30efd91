// Leverage of a row: its squared norm once the rows are whitened (expressed in an orthonormal basis of their column
// space). Heads and chunks go through every step together, as many at once as fit into a batch of memory.
#include "gpu/primitives/primitives.h"
#include "gpu/torch/torch_engine.h"
#include "gpu/torch/torch_tensor.h"
#include "gpu/torch/whitening.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/linalg_eigvalsh.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cassert>
#include <vector>

namespace kvscope::gpu {

namespace {

constexpr std::int64_t kMostMatrices = 512; // of heads and chunks, between two stop points

/// One request, computed for some heads and chunks at a time.
class LeverageRun {
public:
    LeverageRun(const TorchDevice& device, const LeverageRequest& request)
        : m_device(device), m_request(request), m_rows(storedNumbersOf(request.rows)),
          m_ranks(static_cast<std::size_t>(m_rows.size(0))) {
        if (!request.sketch.empty()) m_sketch = device.upload(request.sketch).to(at::kDouble);
        m_scores = at::zeros({m_rows.size(0), m_rows.size(1)}, m_rows.options().dtype(at::kFloat));
    }

    /// `chunks` chunks of `length` rows from row `begin` on, of `heads` heads from `head` on.
    void compute(std::int64_t head, std::int64_t heads, std::int64_t begin, std::int64_t chunks, std::int64_t length) {
        const auto part = [&](const at::Tensor& of) {
            return of.narrow(0, head, heads).narrow(1, begin, chunks * length);
        };
        at::Tensor mine = part(m_rows).to(at::kDouble);
        if (m_sketch.defined())
            mine = at::matmul(mine, m_sketch.size(0) == 1 ? m_sketch.select(0, 0) : m_sketch.narrow(0, head, heads));
        mine = mine.reshape({heads * chunks, length, mine.size(2)});
        at::Tensor noise;
        if (m_request.centred) {
            const at::Tensor mean = mine.mean(1, /*keepdim=*/true);
            noise = mean.square().sum({1, 2}) * (static_cast<double>(length) * kCentringNoise);
            mine = mine - mean;
        }
        const WhiteningRule rule{m_request.route, m_request.regulariser, m_request.strength, length};
        const bool wantsSpectrum = m_request.chunk <= 0 && m_request.wantsSpectrum;
        const auto [directions, solved] = whiteningsOf(m_device, mine, rule, noise, wantsSpectrum);
        // One pass over the products; the square of a root is off by less than the rounding to float.
        const at::Tensor lengths = at::linalg_vector_norm(at::bmm(mine, directions), 2, -1).square_();
        part(m_scores).copy_(lengths.view({heads, chunks * length}));
        for (std::int64_t h = 0; h < heads; ++h)
            m_ranks[static_cast<std::size_t>(head + h)] = solved.rank[static_cast<std::size_t>((h + 1) * chunks - 1)];
        m_spectra.insert(m_spectra.end(), solved.singularValues.begin(), solved.singularValues.end());
    }

    Leverage result() const {
        Leverage out{hostTensorOf(m_scores), {}, m_ranks};
        if (const std::int64_t heads = m_rows.size(0); !m_spectra.empty())
            out.spectrum = {Shape{heads, std::ssize(m_spectra) / heads}, {m_spectra.begin(), m_spectra.end()}};
        return out;
    }

private:
    const TorchDevice& m_device;
    const LeverageRequest& m_request;
    at::Tensor m_rows, m_sketch, m_scores;
    std::vector<double> m_spectra; ///< in the order of the heads
    std::vector<std::int64_t> m_ranks;
};

} // namespace

Leverage TorchEngine::leverage(const LeverageRequest& request, const Checkpoint& checkpoint) const {
#if KVSCOPE_HAS_KERNELS
    if (m_device.runsKernels() && hasLeverageKernel(request)) return sketchedLeverage(request, checkpoint);
#endif
    const std::int64_t heads = request.rows.size(0), n = request.rows.size(1), d = request.rows.size(2);
    assert(n > 0 && (request.sketch.empty() || request.sketch.shape[1] == d));
    const std::int64_t step = request.chunk > 0 ? std::min(request.chunk, n) : n;
    LeverageRun run(m_device, request);
    Steps steps(m_device, checkpoint, static_cast<double>(heads * n));
    const double bytes = 40.0 * static_cast<double>(step * d); // bytes per chunk
    // All heads of a chunk at once where they fit, then as many chunks as fit.
    steps.batches(heads, bytes, 0, [&](std::int64_t head, std::int64_t count) {
        const auto each = static_cast<double>(count);
        steps.batches(n / step, bytes * each, 0, [&](std::int64_t begin, std::int64_t chunks) {
            steps.slices(chunks, kMostMatrices / count, static_cast<double>(step) * each,
                         [&](std::int64_t first, std::int64_t some) {
                             run.compute(head, count, (begin + first) * step, some, step);
                         });
        });
        if (n % step > 0) run.compute(head, count, n - n % step, 1, n % step);
    });
    return run.result();
}

std::vector<double> TorchEngine::spectralDistortion(const Tensor& rows, std::span<const WeightedSet> kept,
                                                    const Checkpoint& checkpoint) const {
    const at::Tensor all = numbersOf(rows);
    assert(static_cast<std::int64_t>(kept.size()) == all.size(0));
    std::vector<double> out;
    Steps steps(m_device, checkpoint, static_cast<double>(all.size(0)));
    for (std::int64_t h = 0; h < all.size(0); ++h, steps.advance(1)) {
        const at::Tensor wide = all.narrow(0, h, 1).to(at::kDouble);
        const WhiteningRule rule{LeverageRoute::Svd, Regulariser::None, 0, all.size(1)};
        const auto [whitening, solved] = whiteningsOf(m_device, wide, rule, {}, false);
        const at::Tensor directions = whitening.select(0, 0);
        const std::int64_t rank = solved.rank.front();
        const WeightedSet& set = kept[static_cast<std::size_t>(h)];
        std::vector<double> weights(set.numeratorWeights.begin(), set.numeratorWeights.end());
        weights.resize(set.numerator.size(), 1.0);
        // The directions within the rank come first; the zero columns behind them would add eigenvalues -1.
        const at::Tensor images = at::matmul(wide.select(0, 0).index_select(0, m_device.listOf(set.numerator)),
                                             directions.narrow(1, 0, rank));
        const at::Tensor sum = at::matmul(images.transpose(0, 1), images * m_device.listOf(weights).unsqueeze(1));
        const at::Tensor values = at::linalg_eigvalsh(sum - at::eye(rank, sum.options()));
        out.push_back(rank == 0 ? 0 : values.abs().max().item<double>());
    }
    return out;
}

} // namespace kvscope::gpu
