#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace kvscope {

/// Context-calibrated compression (Compactor 3.5): the quality y = NLL(full) / NLL(compressed) that a context keeps at
/// retention r follows f_k(r) = expm1(r k) / expm1(k), f_0(r) = r, with k = alpha NLL(c) + beta. k < 0 is concave (the
/// context can be compressed), k = 0 the diagonal, k > 0 worse than that (A2). f_k(0) = 0 is an assumption (A3).

/// f_k(r), r in [0, 1], any finite k; no overflow (A5).
double calibrationCurve(double k, double r);
/// df/dr = k e^{r k} / expm1(k).
double calibrationSlope(double k, double r);
/// df/dk <= 0.
double calibrationSensitivity(double k, double r);
/// The least r with f_k(r) >= tau in [0, 1] (A1): log1p(tau expm1(k)) / k.
double retentionNeeded(double k, double tau);

/// One measurement (r, NLL(c), y).
struct CalibrationTriple {
    std::string context;     ///< which context it belongs to
    double retention = 0;    ///< r, 0..1
    double contextNll = NAN; ///< NLL(c), nats a token; NaN: unknown
    double quality = 0;      ///< y > 0; may exceed 1 (A3)
};

/// What the points say without a curve: the smallest of their retentions from which on every point has at least the
/// quality tau; NaN where the largest retention falls short of it. `triples` of one context.
double retentionOfPoints(std::span<const CalibrationTriple> triples, double tau);

/// A fitted curve. One context, or contexts of equal NLL, determine k alone: then alpha is 0 and beta is k.
struct CalibrationFit {
    double alpha = 0, beta = 0;
    double weight = 1;        ///< w of the loss
    double loss = 0;          ///< sum over the triples of w e^2 where e = f - y > 0 (r* would be too small), else e^2
    std::int64_t triples = 0; ///< with 0 < r < 1: the others do not determine k
    std::int64_t contexts = 0;
    bool slopeKnown = false; ///< alpha was determined
    bool atEdge = false;     ///< some context's k is at an end of the searched range, +-kMostCurvature

    double k(double contextNll) const { return slopeKnown ? alpha * contextNll + beta : beta; }
};

/// Bound on |k| of a fit: f is nearly a step there, r*(0.95) = 0.06 at -50.
inline constexpr double kMostCurvature = 50;

/// Asymmetric least squares, the smallest loss over |k| <= kMostCurvature at every context: a grid over k at the
/// smallest and the largest NLL, then damped Gauss-Newton steps. Deterministic. Throws Error for no triples, numbers
/// out of range, none with 0 < r < 1, a context with several NLLs (also in rows with r = 0 or 1), and contexts without
/// an NLL where there are several.
CalibrationFit fitCalibration(std::span<const CalibrationTriple> triples, double weight);

/// Fits to `count` resamples: the triples of each context drawn with replacement, so that every context stays. Uniforms
/// by (seed, resample, triple). `fit` is the fit to `triples`. Empty where a context has one triple with
/// 0 < r < 1: drawing it again and again would look like certainty.
std::vector<CalibrationFit> bootstrapCalibration(std::span<const CalibrationTriple> triples, const CalibrationFit& fit,
                                                 int count, std::uint64_t seed);

/// Distance of a curve from its points with 0 < r < 1 (elsewhere all curves agree).
struct CalibrationMisfit {
    double rms = NAN;     ///< root of the mean of (f - y)^2; NaN: there is no such point
    double spread = NAN;  ///< standard deviation of y; 0 where all are equal up to rounding
    double loss = 0;      ///< as in the fit: w e^2 where the curve is above the point, else e^2
    double levelLoss = 0; ///< the smallest such loss of constant curves, one per context

    /// R^2 = 1 - rms^2 / spread^2, at most 1: the share of the points' variance that the curve explains, without w.
    /// Below 0 a constant is better; NaN where all points are equal.
    double explained() const { return spread > 0 ? 1 - rms * rms / (spread * spread) : NAN; }
    /// True when the curve keeps more than a quarter of the constants' loss, both weighted as in the fit, and misses
    /// its points by a noticeable quality: then r* is unreliable. With w = 1 and one context this is R^2 < 0.75. The
    /// criterion is this program's; the paper gives none.
    bool isPoor() const;
};
/// `weight`: w of the fit.
CalibrationMisfit misfitOf(std::span<const CalibrationTriple> triples, double k, double weight);
/// The same for several contexts, each with its own k.
CalibrationMisfit misfitOf(std::span<const CalibrationTriple> triples,
                           const std::function<double(const std::string& context)>& curvature, double weight);

/// The 5th and 95th percentile of some numbers, interpolated linearly; NaN without numbers.
struct CalibrationBand {
    double low = NAN, high = low;
};
CalibrationBand bandOf(std::vector<double> numbers);
CalibrationBand retentionBand(std::span<const CalibrationFit> fits, double contextNll, double tau);

} // namespace kvscope
