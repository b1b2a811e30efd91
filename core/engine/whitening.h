#pragma once

#include "core/engine/leverage.h"

#include <cstdint>
#include <span>
#include <vector>

// The small dense problems of leverage, on host numbers, for all engines: an engine reduces rows to k x k matrices, and
// the functions here solve a batch of them on all cores. Matrices are row-major.
namespace kvscope {

/// Squared relative size of the rounding that centring leaves in rows.
inline constexpr double kCentringNoise = 0x1.0p-96;

struct WhiteningRule {
    LeverageRoute route = LeverageRoute::Gram;
    Regulariser regulariser = Regulariser::None;
    double strength = 0;
    std::int64_t rows = 0;
    /// Squared length below which a direction counts as rounding, independent of the longest direction (centring leaves
    /// such lengths of constant rows).
    double noise = 0;
};

/// Whether the route starts from a factor R with R^T R = K^T K, not from K^T K.
inline bool usesFactor(LeverageRoute route) { return route == LeverageRoute::Svd || route == LeverageRoute::Qr; }

struct Whitenings {
    std::vector<double> directions;     ///< [B, k, k] W: leverage of row x = || W^T x ||^2; zero beyond the rank
    std::vector<double> singularValues; ///< [B, k] of the rows, descending; empty unless wanted
    std::vector<std::int64_t> rank;     ///< [B] columns of W in use
};

/// From matrices [B, ., k]: any R with R^T R = K^T K for the routes Svd and Qr, K^T K for the others. noise [B] takes
/// the place of the rule's; empty: 0.
Whitenings whiteningsOf(std::span<const double> matrices, std::int64_t height, std::int64_t k,
                        const WhiteningRule& rule, std::span<const double> noise, bool wantsSpectrum);

/// R^-1 [B, k, k] of Gram matrices R^T R; NaN where rounding makes the factorisation fail.
std::vector<double> inverseRoots(std::span<const double> grams, std::int64_t k);

/// Q^T K [B, k, k] for the orthonormal Q of K_1 = Q R_1, from K_1^T K_1 and K_1^T K; NaN unless K_1 is nearly
/// orthonormal.
std::vector<double> projections(std::span<const double> grams, std::span<const double> products, std::int64_t k);

} // namespace kvscope
