// The k x k matrices of leverage: Gram matrices by products, factors by CholeskyQR2 (Yamamoto, Nakatsukasa, Yanagisawa
// and Fukaya, 2015), which is products and Cholesky factors alone, instead of Householder reflections column by column.
#include "gpu/torch/whitening.h"
#include "gpu/torch/torch_tensor.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/linalg_qr.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace kvscope::gpu {

namespace {

constexpr std::int64_t kProductRows = 1024; // rows of a part: the heads alone are too few products to fill a GPU
// A GPU factors hundreds of small parts side by side; LAPACK takes one after the other and prefers long ones.
constexpr std::int64_t kTriangleRows = 4096, kTriangleRowsOnGpu = 256;

at::Tensor onHost(const at::Tensor& numbers) { return numbers.to(at::kCPU).contiguous(); }

std::span<const double> numbersIn(const at::Tensor& onHost) {
    return {onHost.const_data_ptr<double>(), static_cast<std::size_t>(onHost.numel())};
}

at::Tensor squareMatrices(const TorchDevice& device, const std::vector<double>& numbers, std::int64_t k) {
    return device.listOf(numbers).view({-1, k, k});
}

/// The first `parts` * `length` rows of [B, n, k] as [B parts, length, k].
at::Tensor inParts(const at::Tensor& rows, std::int64_t parts, std::int64_t length) {
    return rows.narrow(1, 0, parts * length).reshape({rows.size(0) * parts, length, rows.size(2)});
}

/// X^T Y [B, k, k] of rows [B, n, k].
at::Tensor productsOf(const at::Tensor& x, const at::Tensor& y) {
    const std::int64_t heads = x.size(0), n = x.size(1), k = x.size(2), parts = n / kProductRows,
                       rest = n % kProductRows;
    const auto products = [](const at::Tensor& a, const at::Tensor& b) { return at::bmm(a.transpose(1, 2), b); };
    if (parts == 0) return products(x, y);
    const at::Tensor sum =
        products(inParts(x, parts, kProductRows), inParts(y, parts, kProductRows)).view({heads, parts, k, k}).sum(1);
    return rest == 0 ? sum : sum + products(x.narrow(1, n - rest, rest), y.narrow(1, n - rest, rest));
}

/// R [B, min(n, k), k] by Householder reflections, for rows of any condition.
at::Tensor trianglesOf(const at::Tensor& rows) {
    const std::int64_t heads = rows.size(0), k = rows.size(2);
    const std::int64_t length = std::max(rows.is_cuda() ? kTriangleRowsOnGpu : kTriangleRows, 2 * k);
    const auto triangle = [](const at::Tensor& of) { return std::get<1>(at::linalg_qr(of, "r")); };
    at::Tensor left = rows;
    while (left.size(1) > length) { // each round leaves the parts' triangles, at most half of their rows
        const std::int64_t parts = left.size(1) / length, rest = left.size(1) % length;
        const at::Tensor triangles = triangle(inParts(left, parts, length)).reshape({heads, parts * k, k});
        left = rest == 0 ? triangles : at::cat({triangles, left.narrow(1, left.size(1) - rest, rest)}, 1);
    }
    return triangle(left);
}

/// On the host: at most 2 k rows as they are, else Q^T K [B, k, k]. K_1 = K R^-1 spans what K does and is nearly
/// orthonormal, so that the R of its own Gram matrix makes it Q to rounding; Q^T K, unlike the product of both R, has
/// no error of R^-1. Only rows too ill-conditioned for a Gram matrix are factored by reflections.
at::Tensor factorsOf(const TorchDevice& device, const at::Tensor& rows) {
    const std::int64_t k = rows.size(2);
    if (rows.size(1) <= 2 * k) return onHost(rows);
    const at::Tensor grams = onHost(productsOf(rows, rows));
    const at::Tensor near = at::bmm(rows, squareMatrices(device, inverseRoots(numbersIn(grams), k), k));
    const at::Tensor small = onHost(at::cat({productsOf(near, near), productsOf(near, rows)}));
    const std::span<const double> both = numbersIn(small);
    const std::vector<double> projected = projections(both.first(both.size() / 2), both.last(both.size() / 2), k);
    at::Tensor factors = small.narrow(0, rows.size(0), rows.size(0)); // its numbers are no longer needed
    std::copy(projected.begin(), projected.end(), factors.mutable_data_ptr<double>());
    std::vector<std::int64_t> hard;
    for (std::int64_t i = 0; i < rows.size(0); ++i)
        if (std::isnan(projected[static_cast<std::size_t>(i * k * k)])) hard.push_back(i);
    if (hard.empty()) return factors;
    const at::Tensor triangles = onHost(trianglesOf(rows.index_select(0, device.listOf(hard))));
    for (std::size_t i = 0; i < hard.size(); ++i)
        factors.select(0, hard[i]).copy_(triangles.select(0, static_cast<std::int64_t>(i)));
    return factors;
}

} // namespace

DeviceWhitenings whiteningsOf(const TorchDevice& device, const at::Tensor& rows, const WhiteningRule& rule,
                              const at::Tensor& noise, bool wantsSpectrum) {
    const at::Tensor small = usesFactor(rule.route) ? factorsOf(device, rows) : onHost(productsOf(rows, rows));
    Whitenings solved =
        kvscope::whiteningsOf(numbersIn(small), small.size(1), rows.size(2), rule,
                              noise.defined() ? doublesOf(noise) : std::vector<double>(), wantsSpectrum);
    at::Tensor directions = squareMatrices(device, solved.directions, rows.size(2));
    return {std::move(directions), std::move(solved)};
}

} // namespace kvscope::gpu
