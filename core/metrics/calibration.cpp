// Context-calibrated compression: measured qualities at several retentions are fitted by a curve with one curvature k
// per context, linear in the context's NLL; the curve's inverse gives the retention for a target quality.
// Overestimating a context costs quality, so errors on that side weigh more.
#include "core/metrics/calibration.h"

#include "core/base/error.h"
#include "core/base/random.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <iterator>
#include <map>
#include <numeric>
#include <utility>

namespace kvscope {

namespace {

/// x / (1 - e^-x), which is 1 + x/2 + x^2/12 - ... at 0.
double smoothRamp(double x) { return std::abs(x) < 1e-4 ? 1 + x / 2 + x * x / 12 : -x / std::expm1(-x); }

/// Loss of e = f - y: w e^2 if e > 0, else e^2.
double lossOf(double error, double weight) { return (error > 0 ? weight : 1) * error * error; }

/// A triple as the fit uses it: k = (1 - place) first + place last, where first and last are the k at the smallest and
/// the largest NLL.
struct FitPoint {
    double retention = 0, quality = 0, place = 0;
    std::string context;
};

using Ends = std::array<double, 2>; ///< k at the smallest and at the largest NLL

double curvatureAt(const Ends& ends, double place) { return (1 - place) * ends[0] + place * ends[1]; }

class Problem {
public:
    Problem(std::vector<FitPoint> points, double weight, bool oneCurvature)
        : m_points(std::move(points)), m_weight(weight), m_oneCurvature(oneCurvature) {}

    const std::vector<FitPoint>& points() const { return m_points; }

    double loss(const Ends& ends) const {
        double sum = 0;
        for (const FitPoint& point : m_points) {
            const double error = calibrationCurve(curvatureAt(ends, point.place), point.retention) - point.quality;
            sum += lossOf(error, m_weight);
        }
        return sum;
    }

    Ends solve() const {
        Ends best = {0, 0};
        for (const Ends& start : starts()) {
            const Ends found = descend(start);
            if (loss(found) < loss(best)) best = found;
        }
        return best;
    }

    /// Damped Gauss-Newton steps (Levenberg-Marquardt) inside the box.
    Ends descend(Ends at) const {
        double damping = 1e-3, here = loss(at);
        for (int step = 0; step < 200 && damping < 1e12; ++step) {
            const Ends next = stepFrom(at, damping);
            const double there = loss(next);
            if (!(there < here)) {
                damping *= 8;
                continue;
            }
            const bool settled = here - there <= 1e-15 * here;
            at = next;
            here = there;
            damping = std::max(damping / 8, 1e-12);
            if (settled) break;
        }
        return at;
    }

private:
    /// The best few points of a grid, because the loss may have several minima.
    std::vector<Ends> starts() const {
        constexpr std::array grid = {-50.0, -35.0, -24.0, -17.0, -12.0, -8.0, -5.0, -3.0, -1.5, -0.5,
                                     0.0,   0.5,   1.5,   3.0,   5.0,   8.0,  12.0, 20.0, 35.0, 50.0};
        std::vector<std::pair<double, Ends>> tried;
        for (const double first : grid)
            for (const double last : grid)
                if (!m_oneCurvature || first == last) tried.emplace_back(loss({first, last}), Ends{first, last});
        constexpr std::size_t kept = 5;
        std::partial_sort(tried.begin(), tried.begin() + kept, tried.end());
        std::vector<Ends> best;
        for (std::size_t i = 0; i < kept; ++i) best.push_back(tried[i].second);
        return best;
    }

    Ends stepFrom(const Ends& at, double damping) const {
        double a = 0, b = 0, c = 0, g = 0, h = 0; // J^T W J = [a b; b c], J^T W e = (g, h)
        for (const FitPoint& point : m_points) {
            const double k = curvatureAt(at, point.place);
            const double error = calibrationCurve(k, point.retention) - point.quality;
            const double weight = error > 0 ? m_weight : 1, slope = calibrationSensitivity(k, point.retention);
            const double first = slope * (1 - point.place), last = slope * point.place;
            a += weight * first * first;
            b += weight * first * last;
            c += weight * last * last;
            g += weight * first * error;
            h += weight * last * error;
        }
        if (m_oneCurvature) return both(at[0] - (g + h) / ((a + 2 * b + c) * (1 + damping) + tiny));
        const bool firstStuck = stuck(at[0], g), lastStuck = stuck(at[1], h);
        const double da = a * (1 + damping) + tiny, dc = c * (1 + damping) + tiny;
        if (firstStuck || lastStuck)
            return {clampEnd(at[0] - (firstStuck ? 0 : g / da)), clampEnd(at[1] - (lastStuck ? 0 : h / dc))};
        const double determinant = da * dc - b * b;
        return {clampEnd(at[0] - (dc * g - b * h) / determinant), clampEnd(at[1] - (da * h - b * g) / determinant)};
    }

    static double clampEnd(double k) { return std::clamp(k, -kMostCurvature, kMostCurvature); }
    static Ends both(double k) { return {clampEnd(k), clampEnd(k)}; }
    /// Whether k is at an end of its range and the loss would fall beyond that end.
    static bool stuck(double k, double gradient) {
        return (k <= -kMostCurvature && gradient > 0) || (k >= kMostCurvature && gradient < 0);
    }

    static constexpr double tiny = 1e-30;
    std::vector<FitPoint> m_points;
    double m_weight;
    bool m_oneCurvature;
};

void refuse(bool wrong, const std::string& sentence, const std::string& remedy) {
    if (wrong) throw Error({sentence, "calibration", remedy});
}

void checkTriple(const CalibrationTriple& triple) {
    const std::string place = fmt::format("a triple of context '{}' ", triple.context);
    refuse(!(triple.retention >= 0 && triple.retention <= 1), place + fmt::format("has retention {}", triple.retention),
           "Retention is the fraction kept, from 0 to 1");
    refuse(!(triple.quality > 0) || !std::isfinite(triple.quality),
           place + fmt::format("has quality {}", triple.quality),
           "Quality is NLL(full) / NLL(compressed), a positive number");
    refuse(std::isinf(triple.contextNll), place + "has an infinite NLL", "Leave out what was not measured");
}

struct NllRange {
    double low = 0, high = 0;
    bool isPoint() const { return !(high - low > 1e-9 * std::max({1.0, std::abs(low), std::abs(high)})); }
};

void requireLosses(const std::map<std::string, double>& contexts) {
    for (const auto& [name, nll] : contexts)
        refuse(std::isnan(nll), fmt::format("context '{}' has no NLL, and there are several contexts", name),
               "Give nll_context for every context, or calibrate one context alone");
}

/// Range of the contexts' NLLs; a point at 0 where the only context has none.
NllRange rangeOf(const std::map<std::string, double>& contexts) {
    if (contexts.size() == 1) return {};
    requireLosses(contexts);
    NllRange range{INFINITY, -INFINITY};
    for (const auto& [name, nll] : contexts) range = {std::min(range.low, nll), std::max(range.high, nll)};
    return range;
}

std::map<std::string, double> contextsOf(std::span<const CalibrationTriple> triples) {
    std::map<std::string, double> contexts;
    for (const CalibrationTriple& triple : triples) {
        const auto [at, added] = contexts.emplace(triple.context, triple.contextNll);
        const bool same = std::isnan(at->second)
                              ? std::isnan(triple.contextNll)
                              : std::abs(at->second - triple.contextNll) <= 1e-6 * std::abs(at->second);
        refuse(!added && !same, fmt::format("context '{}' has several NLLs", triple.context),
               "Give every context a name of its own");
    }
    return contexts;
}

/// At r = 0 and r = 1 every curve has the same value, so such a triple does not determine k.
bool isInformative(const CalibrationTriple& triple) { return triple.retention > 0 && triple.retention < 1; }

std::vector<CalibrationTriple> informative(std::span<const CalibrationTriple> triples) {
    std::vector<CalibrationTriple> inside;
    std::ranges::copy_if(triples, std::back_inserter(inside), isInformative);
    refuse(inside.empty(), "no triple lies between retention 0 and 1, and at both ends every curve is the same",
           "Measure the quality at retentions between them");
    return inside;
}

std::vector<FitPoint> pointsOf(std::span<const CalibrationTriple> triples, const NllRange& range) {
    std::vector<FitPoint> points;
    for (const CalibrationTriple& triple : triples)
        points.push_back({triple.retention, triple.quality,
                          range.isPoint() ? 0 : (triple.contextNll - range.low) / (range.high - range.low),
                          triple.context});
    return points;
}

/// alpha and beta from k at both ends of the NLL range.
CalibrationFit fitFrom(const Ends& ends, const NllRange& range, const Problem& problem, double weight) {
    CalibrationFit fit;
    fit.slopeKnown = !range.isPoint();
    fit.alpha = fit.slopeKnown ? (ends[1] - ends[0]) / (range.high - range.low) : 0;
    fit.beta = ends[0] - fit.alpha * range.low;
    fit.weight = weight;
    fit.loss = problem.loss(ends);
    fit.triples = std::ssize(problem.points());
    const auto atEnd = [](double k) { return std::abs(k) > kMostCurvature - 1e-6; };
    fit.atEdge = atEnd(ends[0]) || atEnd(ends[1]);
    return fit;
}

/// The smallest loss of a constant curve. Numbers above and below the level weigh differently, so the level is a
/// weighted mean with weights that depend on it; iterating from the plain mean converges after finitely many changes of
/// side.
double leastLevelLoss(const std::vector<double>& numbers, double weight) {
    double level = std::accumulate(numbers.begin(), numbers.end(), 0.0) / static_cast<double>(numbers.size());
    for (std::size_t step = 0; step <= numbers.size(); ++step) {
        double weights = 0, sum = 0;
        for (const double number : numbers) {
            const double own = number < level ? weight : 1;
            weights += own, sum += own * number;
        }
        if (std::exchange(level, sum / weights) == sum / weights) break;
    }
    return std::accumulate(numbers.begin(), numbers.end(), 0.0,
                           [&](double sum, double number) { return sum + lossOf(level - number, weight); });
}

/// Standard deviation; 0 where the numbers differ only by rounding.
double spreadOf(const std::vector<double>& numbers) {
    const double count = static_cast<double>(numbers.size()),
                 mean = std::accumulate(numbers.begin(), numbers.end(), 0.0) / count;
    double squares = 0; // in a second pass, because the numbers may differ little
    for (const double number : numbers) squares += (number - mean) * (number - mean);
    const double spread = std::sqrt(squares / count);
    return spread <= 1e-12 * std::max(1.0, std::abs(mean)) ? 0 : spread;
}

} // namespace

double calibrationCurve(double k, double r) {
    if (k == 0) return r;
    if (k > 0) // e^{k (r - 1)} (1 - e^{-r k}) / (1 - e^{-k}): no exponent is positive
        return std::exp(k * (r - 1)) * std::expm1(-r * k) / std::expm1(-k);
    return std::expm1(r * k) / std::expm1(k);
}

double calibrationSlope(double k, double r) {
    if (k == 0) return 1;
    return k > 0 ? std::exp(k * (r - 1)) * k / -std::expm1(-k) : std::exp(r * k) * k / std::expm1(k);
}

// d ln f / dk = r / (1 - e^{-r k}) - 1 / (1 - e^{-k}).
double calibrationSensitivity(double k, double r) {
    if (r <= 0 || r >= 1) return 0;
    const double relative =
        std::abs(k) < 1e-4 ? (r - 1) / 2 + k * (r * r - 1) / 12 : (smoothRamp(r * k) - smoothRamp(k)) / k;
    return calibrationCurve(k, r) * relative;
}

double retentionNeeded(double k, double tau) {
    assert(tau >= 0 && tau <= 1);
    if (k == 0 || tau == 0 || tau == 1) return tau;
    if (k > 1) return std::max(0.0, 1 + std::log(tau + (1 - tau) * std::exp(-k)) / k);
    if (k < -1) // 1 + tau expm1(k) without the cancellation
        return std::log((1 - tau) + tau * std::exp(k)) / k;
    return std::log1p(tau * std::expm1(k)) / k;
}

double retentionOfPoints(std::span<const CalibrationTriple> triples, double tau) {
    double fallsShort = -1, kept = NAN;
    for (const CalibrationTriple& triple : triples)
        if (triple.quality < tau) fallsShort = std::max(fallsShort, triple.retention);
    for (const CalibrationTriple& triple : triples)
        if (triple.retention > fallsShort && !(triple.retention >= kept)) kept = triple.retention;
    return kept;
}

CalibrationFit fitCalibration(std::span<const CalibrationTriple> triples, double weight) {
    refuse(triples.empty(), "there are no triples to fit", "Measure some with the model, or use a proxy or a manual k");
    refuse(!(weight > 0) || !std::isfinite(weight), fmt::format("the weight {} is not positive", weight),
           "Give 1 to 20");
    std::ranges::for_each(triples, checkTriple);
    const std::vector<CalibrationTriple> inside = informative(triples);
    const auto contexts = contextsOf(inside), all = contextsOf(triples); // a row at an end may state another NLL
    const NllRange range = rangeOf(contexts);
    if (!range.isPoint()) requireLosses(all); // every context gets its k from its NLL
    const Problem problem(pointsOf(inside, range), weight, range.isPoint());
    CalibrationFit fit = fitFrom(problem.solve(), range, problem, weight);
    fit.contexts = std::ssize(contexts);
    return fit;
}

std::vector<CalibrationFit> bootstrapCalibration(std::span<const CalibrationTriple> triples, const CalibrationFit& fit,
                                                 int count, std::uint64_t seed) {
    const std::vector<CalibrationTriple> inside = informative(triples);
    const NllRange range = rangeOf(contextsOf(inside));
    std::map<std::string, std::vector<FitPoint>> byContext;
    for (FitPoint& point : pointsOf(inside, range)) byContext[point.context].push_back(point);
    if (std::any_of(byContext.begin(), byContext.end(), [](const auto& one) { return one.second.size() < 2; }))
        return {};
    const Ends start = {fit.k(range.low), fit.k(range.high)};
    std::vector<CalibrationFit> fits;
    for (int resample = 0; resample < count; ++resample) {
        std::vector<FitPoint> drawn;
        for (const auto& [name, points] : byContext)
            for (std::size_t i = 0; i < points.size(); ++i) {
                const double u = uniformAt({.seed = seed,
                                            .round = static_cast<std::uint32_t>(resample),
                                            .token = static_cast<std::uint32_t>(drawn.size())});
                drawn.push_back(points[static_cast<std::size_t>(u * static_cast<double>(points.size()))]);
            }
        const Problem problem(std::move(drawn), fit.weight, range.isPoint());
        fits.push_back(fitFrom(problem.descend(start), range, problem, fit.weight));
        fits.back().contexts = fit.contexts;
    }
    return fits;
}

bool CalibrationMisfit::isPoor() const {
    constexpr double negligible = 0.02; // a difference in quality that does not matter
    return rms > negligible && loss > levelLoss / 4;
}

CalibrationMisfit misfitOf(std::span<const CalibrationTriple> triples, double k, double weight) {
    return misfitOf(
        triples, [k](const std::string&) { return k; }, weight);
}

CalibrationMisfit misfitOf(std::span<const CalibrationTriple> triples,
                           const std::function<double(const std::string& context)>& curvature, double weight) {
    CalibrationMisfit misfit;
    std::vector<double> all;
    std::map<std::string, std::vector<double>> byContext;
    double squares = 0;
    for (const CalibrationTriple& triple : triples)
        if (isInformative(triple)) {
            const double error = calibrationCurve(curvature(triple.context), triple.retention) - triple.quality;
            squares += error * error;
            misfit.loss += lossOf(error, weight);
            all.push_back(triple.quality);
            byContext[triple.context].push_back(triple.quality);
        }
    if (all.empty()) return misfit;
    misfit.rms = std::sqrt(squares / static_cast<double>(all.size()));
    misfit.spread = spreadOf(all);
    for (const auto& [context, qualities] : byContext) misfit.levelLoss += leastLevelLoss(qualities, weight);
    return misfit;
}

CalibrationBand bandOf(std::vector<double> numbers) {
    if (numbers.empty()) return {};
    std::ranges::sort(numbers);
    const auto quantile = [&](double share) {
        const double place = share * static_cast<double>(numbers.size() - 1);
        const auto below = static_cast<std::size_t>(place);
        const std::size_t above = std::min(below + 1, numbers.size() - 1);
        return std::lerp(numbers[below], numbers[above], place - std::floor(place));
    };
    return {quantile(0.05), quantile(0.95)};
}

CalibrationBand retentionBand(std::span<const CalibrationFit> fits, double contextNll, double tau) {
    std::vector<double> values;
    for (const CalibrationFit& fit : fits) values.push_back(retentionNeeded(fit.k(contextNll), tau));
    return bandOf(std::move(values));
}

} // namespace kvscope
