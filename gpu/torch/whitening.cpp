// A matrix W that whitens rows, for many heads and chunks at once. The rows are reduced to a k x k matrix each, in
// parts that a GPU computes side by side; one batched decomposition solves all of them, and the few that it cannot
// solve are solved again by a safer route.
#include "gpu/torch/whitening.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/linalg_cholesky_ex.h>
#include <ATen/ops/linalg_eigh.h>
#include <ATen/ops/linalg_qr.h>
#include <ATen/ops/linalg_solve_triangular.h>
#include <ATen/ops/linalg_svd.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/where.h>

#include <algorithm>
#include <cmath>

namespace kvscope::gpu {

namespace {

constexpr double kEpsilon = 0x1.0p-52;
constexpr std::int64_t kGramRows = 1024; // rows of a part: the heads alone are too few products to fill a GPU
// A GPU factors hundreds of small parts side by side; LAPACK takes one after the other and prefers long ones.
constexpr std::int64_t kTriangleRows = 4096, kTriangleRowsOnGpu = 256;

double ridgeOf(const WhiteningRule& rule) { return rule.regulariser == Regulariser::Ridge ? rule.strength : 0; }

/// Relative size below which a direction counts as rounding.
double tolerance(const WhiteningRule& rule, std::int64_t k) {
    return static_cast<double>(std::max(rule.rows, k)) * kEpsilon;
}

/// The first `parts` * `length` rows of [B, n, k] as [B parts, length, k].
at::Tensor inParts(const at::Tensor& rows, std::int64_t parts, std::int64_t length) {
    return rows.narrow(1, 0, parts * length).reshape({rows.size(0) * parts, length, rows.size(2)});
}

/// Divides directions [B, k, k] by their lengths; `squares` [B, k]: squared lengths, descending, ridge included.
Whitening fromSpectrum(const at::Tensor& vectors, const at::Tensor& squares, const at::Tensor& cut,
                       const WhiteningRule& rule) {
    const bool clamp = rule.regulariser == Regulariser::Clamp;
    const at::Tensor counts = clamp ? squares == squares : squares > cut.unsqueeze(-1);
    const at::Tensor lengths = (clamp ? squares.clamp_min(rule.strength) : squares).sqrt();
    const at::Tensor scale = at::where(counts, lengths.reciprocal(), 0.0);
    return {vectors * scale.unsqueeze(-2), counts.sum(-1), (squares - ridgeOf(rule)).clamp_min(0).sqrt()};
}

Whitening byEigenvectors(const at::Tensor& gram, const WhiteningRule& rule) {
    const auto [values, vectors] = at::linalg_eigh(gram); // ascending
    const at::Tensor squares = values.flip(-1);
    const at::Tensor cut = at::maximum(rule.noise, squares.select(-1, 0) * tolerance(rule, gram.size(-1)));
    return fromSpectrum(vectors.flip(-1), squares, cut, rule);
}

/// K = U S V^T and the triangle R have the same S and V.
Whitening bySingularVectors(const at::Tensor& triangle, const WhiteningRule& rule) {
    const auto [left, values, right] = at::linalg_svd(triangle, /*full_matrices=*/false);
    const double share = tolerance(rule, triangle.size(-1));
    const at::Tensor squares = values.square();
    const at::Tensor cut = at::maximum(rule.noise, squares.select(-1, 0) * (share * share));
    return fromSpectrum(right.transpose(-1, -2), squares, cut, rule);
}

/// Solves the problems that are not marked sound [B] again, by a route that always works.
template <class Route>
Whitening mended(Whitening made, const at::Tensor& sound, const at::Tensor& from, const WhiteningRule& rule,
                 const Route& route) {
    if (sound.all().item<bool>()) return made;
    const at::Tensor broken = sound.logical_not().nonzero().squeeze(-1);
    WhiteningRule theirs = rule;
    theirs.noise = rule.noise.index_select(0, broken);
    const Whitening other = route(from.index_select(0, broken), theirs);
    made.directions.index_copy_(0, broken, other.directions);
    made.rank.index_copy_(0, broken, other.rank);
    return made;
}

/// X X^T = inverse of the Gram matrix. Where a pivot is only rounding, eigenvectors are used instead.
Whitening byCholesky(const at::Tensor& gram, const WhiteningRule& rule) {
    const std::int64_t k = gram.size(-1);
    const auto [lower, info] = at::linalg_cholesky_ex(gram);
    const at::Tensor cut = at::maximum(rule.noise, gram.diagonal(0, -2, -1).amax(-1) * tolerance(rule, k));
    const at::Tensor counts = lower.diagonal(0, -2, -1).square() > cut.unsqueeze(-1);
    const at::Tensor identity = at::eye(k, gram.options()).expand_as(gram);
    const at::Tensor inverse = at::linalg_solve_triangular(lower, identity, /*upper=*/false);
    return mended({inverse.transpose(-1, -2), counts.sum(-1), {}}, (info == 0).logical_and(counts.all(-1)), gram, rule,
                  byEigenvectors);
}

/// K R^-1 is orthonormal. Where R's diagonal shows dependent columns, singular vectors are used instead.
Whitening byTriangle(const at::Tensor& triangle, const WhiteningRule& rule) {
    const std::int64_t k = triangle.size(-1);
    if (triangle.size(-2) < k) return bySingularVectors(triangle, rule);
    const at::Tensor pivots = triangle.diagonal(0, -2, -1).abs();
    const at::Tensor cut = at::maximum(rule.noise.sqrt(), pivots.amax(-1) * tolerance(rule, k));
    const at::Tensor counts = pivots > cut.unsqueeze(-1);
    const at::Tensor identity = at::eye(k, triangle.options()).expand_as(triangle);
    const at::Tensor inverse = at::linalg_solve_triangular(triangle, identity, /*upper=*/true);
    return mended({inverse, counts.sum(-1), {}}, counts.all(-1), triangle, rule, bySingularVectors);
}

} // namespace

at::Tensor gramOf(const at::Tensor& rows) {
    const std::int64_t heads = rows.size(0), n = rows.size(1), k = rows.size(2);
    const auto gram = [](const at::Tensor& part) { return at::bmm(part.transpose(1, 2), part); };
    const std::int64_t parts = n / kGramRows, rest = n % kGramRows;
    if (parts == 0) return gram(rows);
    const at::Tensor sum = gram(inParts(rows, parts, kGramRows)).view({heads, parts, k, k}).sum(1);
    return rest == 0 ? sum : sum + gram(rows.narrow(1, n - rest, rest));
}

at::Tensor triangleOf(const at::Tensor& rows) {
    const std::int64_t heads = rows.size(0), k = rows.size(2);
    const std::int64_t length = std::max(rows.is_cuda() ? kTriangleRowsOnGpu : kTriangleRows, 2 * k);
    const auto triangle = [](const at::Tensor& of) { return std::get<1>(at::linalg_qr(of, "r")); };
    at::Tensor left = rows;
    while (left.size(1) > length) { // each round leaves at most half of the rows: the parts' triangles
        const std::int64_t parts = left.size(1) / length, rest = left.size(1) % length;
        const at::Tensor triangles = triangle(inParts(left, parts, length)).reshape({heads, parts * k, k});
        left = rest == 0 ? triangles : at::cat({triangles, left.narrow(1, left.size(1) - rest, rest)}, 1);
    }
    return triangle(left);
}

Whitening whiteningOfGram(const at::Tensor& gram, const WhiteningRule& rule) {
    at::Tensor regular = gram;
    if (ridgeOf(rule) > 0) regular = gram + at::eye(gram.size(-1), gram.options()) * ridgeOf(rule);
    return rule.route == LeverageRoute::Cholesky ? byCholesky(regular, rule) : byEigenvectors(regular, rule);
}

Whitening whiteningOfTriangle(const at::Tensor& triangle, const WhiteningRule& rule) {
    at::Tensor regular = triangle;
    if (ridgeOf(rule) > 0) { // ridge: k more rows sqrt(strength) I
        const std::int64_t k = triangle.size(-1);
        const at::Tensor more = at::eye(k, triangle.options()).mul(std::sqrt(ridgeOf(rule)));
        regular = triangleOf(at::cat({triangle, more.expand({triangle.size(0), k, k})}, 1));
    }
    return rule.route == LeverageRoute::Qr ? byTriangle(regular, rule) : bySingularVectors(regular, rule);
}

} // namespace kvscope::gpu
