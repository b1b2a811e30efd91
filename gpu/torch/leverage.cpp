// Leverage says how much a row sticks out of the others: how long it is once the rows are turned and stretched into an
// orthonormal basis. The stretching matrix W comes from a d x d problem; directions that do not count are zero columns
// of it, so that heads of different rank stay in one batch.
#include "gpu/torch/torch_engine.h"
#include "gpu/torch/torch_tensor.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/diag_embed.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/linalg_cholesky_ex.h>
#include <ATen/ops/linalg_eigh.h>
#include <ATen/ops/linalg_eigvalsh.h>
#include <ATen/ops/linalg_qr.h>
#include <ATen/ops/linalg_solve_triangular.h>
#include <ATen/ops/linalg_svd.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cassert>
#include <vector>

namespace kvscope::gpu {

namespace {

constexpr double kEpsilon = 0x1.0p-52;
/// Squared relative size of what rounding leaves of rows whose mean was taken away.
constexpr double kCentringNoise = 0x1.0p-96;

/// W [B, k, k] with leverage of row x = ||W^T x||^2.
struct Whitening {
    at::Tensor directions;
    at::Tensor rank;           ///< [B] columns of W that count
    at::Tensor singularValues; ///< [B, k] of the rows, descending; undefined where the route does not need them
};

struct Rule {
    LeverageRoute route = LeverageRoute::Svd;
    Regulariser regulariser = Regulariser::None;
    double strength = 0;
    std::int64_t rows = 0;
    at::Tensor noise; ///< [B] squared length below which a direction is rounding

    double ridge() const { return regulariser == Regulariser::Ridge ? strength : 0; }
    /// Relative size below which a direction is rounding.
    double tolerance(std::int64_t d) const { return static_cast<double>(std::max(rows, d)) * kEpsilon; }
};

/// Directions [B, k, k] over their lengths; `squares` [B, k] are the squared lengths, descending, ridge included.
Whitening fromSpectrum(const at::Tensor& vectors, const at::Tensor& squares, const at::Tensor& cut, const Rule& rule) {
    const bool clamp = rule.regulariser == Regulariser::Clamp;
    const at::Tensor counts = clamp ? squares == squares : squares > cut.unsqueeze(-1);
    const at::Tensor lengths = (clamp ? squares.clamp_min(rule.strength) : squares).sqrt();
    const at::Tensor scale = at::where(counts, lengths.reciprocal(), 0.0);
    return {vectors * scale.unsqueeze(-2), counts.sum(-1), (squares - rule.ridge()).clamp_min(0).sqrt()};
}

Whitening byEigenvectors(const at::Tensor& gram, const Rule& rule) {
    const auto [values, vectors] = at::linalg_eigh(gram); // ascending
    const at::Tensor squares = values.flip(-1);
    const at::Tensor cut = at::maximum(rule.noise, squares.select(-1, 0) * rule.tolerance(gram.size(-1)));
    return fromSpectrum(vectors.flip(-1), squares, cut, rule);
}

/// X X^T = inverse of the Gram matrix. Where a pivot is rounding the eigenvectors find the directions that count.
Whitening byCholesky(const at::Tensor& gram, const Rule& rule) {
    const std::int64_t d = gram.size(-1);
    const auto [lower, info] = at::linalg_cholesky_ex(gram);
    const at::Tensor cut = at::maximum(rule.noise, gram.diagonal(0, -2, -1).amax(-1) * rule.tolerance(d));
    const at::Tensor pivots = lower.diagonal(0, -2, -1).square();
    const at::Tensor sound = (info == 0).logical_and((pivots > cut.unsqueeze(-1)).all(-1));
    if (!sound.all().item<bool>())
        return byEigenvectors(gram, rule);
    const at::Tensor identity = at::eye(d, gram.options()).expand_as(gram);
    const at::Tensor inverse = at::linalg_solve_triangular(lower, identity, /*upper=*/false);
    return {inverse.transpose(-1, -2), (pivots > 0).sum(-1), {}};
}

/// K = U S V^T and the factor R have the same S and V.
Whitening bySingularVectors(const at::Tensor& factor, const Rule& rule) {
    const auto [left, values, right] = at::linalg_svd(factor, /*full_matrices=*/false);
    const double share = rule.tolerance(factor.size(-1));
    const at::Tensor squares = values.square();
    const at::Tensor cut = at::maximum(rule.noise, squares.select(-1, 0) * (share * share));
    return fromSpectrum(right.transpose(-1, -2), squares, cut, rule);
}

/// K R^-1 is orthonormal. Where R's diagonal tells of dependent columns the singular vectors take over.
Whitening byTriangle(const at::Tensor& factor, const Rule& rule) {
    const std::int64_t d = factor.size(-1);
    if (factor.size(-2) < d)
        return bySingularVectors(factor, rule);
    const at::Tensor upper = std::get<1>(at::linalg_qr(factor, "r"));
    const at::Tensor pivots = upper.diagonal(0, -2, -1).abs();
    const at::Tensor cut = at::maximum(rule.noise.sqrt(), pivots.amax(-1) * rule.tolerance(d));
    if (!(pivots > cut.unsqueeze(-1)).all().item<bool>())
        return bySingularVectors(factor, rule);
    const at::Tensor identity = at::eye(d, factor.options()).expand_as(upper);
    return {at::linalg_solve_triangular(upper, identity, /*upper=*/true), (pivots > 0).sum(-1), {}};
}

bool usesFactor(LeverageRoute route) {
    return route == LeverageRoute::Svd || route == LeverageRoute::Qr;
}

/// Rows [B, c, d] in double, sketched and centred, and what their decompositions start from.
class WideRows {
public:
    WideRows(const at::Tensor& rows, const at::Tensor& sketch, bool centred) : m_rows(rows.to(at::kDouble)) {
        if (sketch.defined())
            m_rows = at::matmul(m_rows, sketch);
        m_noise = at::zeros({m_rows.size(0)}, m_rows.options());
        if (!centred)
            return;
        const at::Tensor mean = m_rows.mean(1, /*keepdim=*/true);
        m_noise = mean.square().sum({1, 2}) * (static_cast<double>(m_rows.size(1)) * kCentringNoise);
        m_rows = m_rows - mean;
    }

    const at::Tensor& rows() const { return m_rows; }
    const at::Tensor& noise() const { return m_noise; }
    at::Tensor gram() const { return at::matmul(m_rows.transpose(1, 2), m_rows); }
    at::Tensor factor() const { return std::get<1>(at::linalg_qr(m_rows, "r")); }

private:
    at::Tensor m_rows, m_noise;
};

Whitening whiteningOf(const WideRows& rows, const Rule& rule) {
    const auto options = rows.rows().options();
    const std::int64_t d = rows.rows().size(2);
    if (!usesFactor(rule.route)) {
        const at::Tensor gram = rows.gram() + at::eye(d, options) * rule.ridge();
        return rule.route == LeverageRoute::Cholesky ? byCholesky(gram, rule) : byEigenvectors(gram, rule);
    }
    at::Tensor factor = rows.factor();
    if (rule.ridge() > 0) { // d more rows sqrt(strength) I
        const at::Tensor more = at::eye(d, options).mul(std::sqrt(rule.ridge())).expand({factor.size(0), d, d});
        factor = at::cat({factor, more}, 1);
    }
    return rule.route == LeverageRoute::Qr ? byTriangle(factor, rule) : bySingularVectors(factor, rule);
}

/// [B, k] singular values, also for the routes that do without them; zero beyond the number of rows.
at::Tensor spectrumOf(const WideRows& rows, const Whitening& whitening, const Rule& rule) {
    at::Tensor values = whitening.singularValues;
    if (!values.defined())
        values = usesFactor(rule.route) ? std::get<1>(at::linalg_svd(rows.factor(), false))
                                        : at::linalg_eigvalsh(rows.gram()).flip(-1).clamp_min(0).sqrt();
    const std::int64_t missing = rows.rows().size(2) - values.size(-1);
    return missing == 0 ? values : at::cat({values, at::zeros({values.size(0), missing}, values.options())}, -1);
}

} // namespace

Leverage TorchEngine::leverage(const LeverageRequest& request, const Checkpoint& checkpoint) const {
    const at::Tensor rows = numbersOf(request.rows);
    const std::int64_t heads = rows.size(0), n = rows.size(1), d = rows.size(2);
    assert(n > 0 && (request.sketch.empty() || request.sketch.shape[1] == d));
    const std::int64_t step = request.chunk > 0 ? std::min(request.chunk, n) : n;
    const at::Tensor sketch =
        request.sketch.empty() ? at::Tensor() : m_device.upload(request.sketch).to(at::kDouble);
    const at::Tensor scores = at::zeros({heads, n}, rows.options());
    Leverage out{{}, {}, std::vector<std::int64_t>(static_cast<std::size_t>(heads))};
    std::vector<at::Tensor> spectra;
    Steps steps(m_device, checkpoint, static_cast<double>(heads * n));
    // Chunks of `length` rows of one head, `count` of them from row `begin` on.
    const auto compute = [&](std::int64_t h, std::int64_t begin, std::int64_t count, std::int64_t length) {
        const at::Tensor mine = rows.select(0, h).narrow(0, begin, count * length).reshape({count, length, d});
        const WideRows wide(mine, sketch.defined() ? sketch.select(0, sketch.size(0) == 1 ? 0 : h) : sketch,
                            request.centred);
        const Rule rule{request.route, request.regulariser, request.strength, length, wide.noise()};
        const Whitening whitening = whiteningOf(wide, rule);
        const at::Tensor lengths = at::matmul(wide.rows(), whitening.directions).square_().sum(-1);
        scores.select(0, h).narrow(0, begin, count * length).copy_(lengths.flatten());
        out.rank[static_cast<std::size_t>(h)] = integersOf(whitening.rank).back();
        if (request.chunk <= 0)
            spectra.push_back(spectrumOf(wide, whitening, rule));
    };
    const double bytes = 40.0 * static_cast<double>(step * d);
    for (std::int64_t h = 0; h < heads; ++h) {
        steps.batches(n / step, bytes, static_cast<double>(step), [&](std::int64_t begin, std::int64_t count) {
            compute(h, begin * step, count, step);
        });
        if (n % step > 0)
            compute(h, n - n % step, 1, n % step);
    }
    out.scores = tensorOf(scores);
    if (request.chunk <= 0)
        out.spectrum = hostTensorOf(at::cat(spectra, 0));
    return out;
}

std::vector<double> TorchEngine::spectralDistortion(const Tensor& rows, std::span<const WeightedSet> kept,
                                                    const Checkpoint& checkpoint) const {
    const at::Tensor all = numbersOf(rows);
    assert(static_cast<std::int64_t>(kept.size()) == all.size(0));
    std::vector<double> out;
    Steps steps(m_device, checkpoint, static_cast<double>(all.size(0)));
    for (std::int64_t h = 0; h < all.size(0); ++h, steps.advance(1)) {
        const WideRows wide(all.narrow(0, h, 1), {}, false);
        const Whitening whitening =
            bySingularVectors(wide.factor(), {LeverageRoute::Svd, Regulariser::None, 0, all.size(1), wide.noise()});
        const at::Tensor directions = whitening.directions.select(0, 0);
        const std::int64_t rank = integersOf(whitening.rank).front();
        const WeightedSet& set = kept[static_cast<std::size_t>(h)];
        std::vector<double> weights(set.numeratorWeights.begin(), set.numeratorWeights.end());
        weights.resize(set.numerator.size(), 1.0);
        // The directions that count come first; the others are zero columns and would add eigenvalues -1.
        const at::Tensor images = at::matmul(wide.rows().select(0, 0).index_select(0, m_device.listOf(set.numerator)),
                                             directions.narrow(1, 0, rank));
        const at::Tensor sum = at::matmul(images.transpose(0, 1), images * m_device.listOf(weights).unsqueeze(1));
        const at::Tensor values = at::linalg_eigvalsh(sum - at::eye(rank, sum.options()));
        out.push_back(rank == 0 ? 0 : values.abs().max().item<double>());
    }
    return out;
}

} // namespace kvscope::gpu
