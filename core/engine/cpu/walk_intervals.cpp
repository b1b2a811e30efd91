// Why the bounds hold. Let u = 2^-24, K and X be the lengths of a row's centred key and weighted value, and g the
// roundings on the longest path of an inner product. Then the exponent of an entry is off by at most
// (g + 5) u logScale K_i K_j + 2 u |logShift|, e^x by 8 u of itself, the product of values by (g + 4) u valueScale X_i
// X_j, and additions by u of a sum's size each. All of it is at most e (X'_i X'_j) (c1 logScale K_i K_j + c2), where
// X' = sqrt(valueScale) X + sqrt(valueConstant), so two sums over j, of e X'_j K_j and of e X'_j, bound the error of y.
// c2 also covers the error of the double computation, which starts from keys that are not centred.
#include "core/engine/cpu/walk_intervals.h"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace kvscope::cpu {

namespace {

constexpr double kUnit = 0x1.0p-24, kDoubleUnit = 0x1.0p-53;
constexpr double kDepthStep = 16;                       // as kernels/bounded_floats.cpp sums products
constexpr double kMostError = 0.01;                     // of an entry; below it e^x - 1 is x within 1 %
constexpr double kMostExponent = 60, kMostLength = 1e4; // so that no sum of a panel overflows a float
constexpr double kSecondOrder = 1.05;                   // products of errors, and the rounding of the bounds themselves
constexpr double kTiny = 1e-12;                         // added to sizes: covers products below the range of float

std::int64_t wholePanels(std::size_t rows) {
    return (static_cast<std::int64_t>(rows) + kMaxLanes - 1) / kMaxLanes * kMaxLanes;
}

double roundings(std::int64_t depth) {
    return std::min(kDepthStep, static_cast<double>(depth)) + std::ceil(static_cast<double>(depth) / kDepthStep);
}

double largest(const std::vector<double>& numbers) {
    double most = 0;
    for (const double x : numbers) most = most >= x || std::isnan(most) ? most : x; // NaN stays
    return most;
}

double lengthOf(const std::vector<double>& vector) {
    double square = 0;
    for (const double x : vector) square += x * x;
    return std::sqrt(square);
}

} // namespace

bool WalkIntervals::begin(const BalancingWalk& walk, const std::vector<const float*>& keys, std::int64_t keyDepth,
                          const std::vector<const float*>& values, std::int64_t valueDepth,
                          const std::vector<double>& centre) {
    const std::int64_t rows = std::ssize(keys), padded = wholePanels(keys.size());
    m_keyDepth = keyDepth;
    m_valueDepth = values.empty() ? 0 : valueDepth;
    const auto resize = [padded, rows](Aligned<float>& to, std::int64_t width) {
        to.resize(static_cast<std::size_t>(padded * width));
        std::fill(to.begin() + rows * width, to.end(), 0.0F);
    };
    resize(m_keys, m_keyDepth);
    resize(m_values, m_valueDepth);
    for (auto* numbers : {&m_signs, &m_sizes, &m_reaches}) numbers->assign(static_cast<std::size_t>(padded), 0.0F);
    const double* shift = centre.empty() ? nullptr : centre.data();
    for (std::int64_t i = 0; i < rows; ++i) {
        m_kernels.shiftedRow(keys[i], shift, 1, keyDepth, m_keys.data() + i * keyDepth);
        if (m_valueDepth > 0)
            m_kernels.shiftedRow(values[i], nullptr, walk.weights.empty() ? 1 : walk.weights[i], valueDepth,
                                 m_values.data() + i * valueDepth);
    }
    m_keyLanes.resize(static_cast<std::size_t>(keyDepth * kMaxLanes));
    m_valueLanes.resize(static_cast<std::size_t>(m_valueDepth * kMaxLanes));
    m_logScale = static_cast<float>(walk.logScale);
    m_logShift = static_cast<float>(walk.logShift);
    m_valueScale = static_cast<float>(walk.valueScale);
    m_valueConstant = static_cast<float>(walk.valueConstant);
    return boundErrors(walk, keys, centre);
}

bool WalkIntervals::boundErrors(const BalancingWalk& walk, const std::vector<const float*>& keys,
                                const std::vector<double>& centre) {
    const auto rows = static_cast<std::int64_t>(keys.size());
    const auto norms = [&](const Aligned<float>& of, std::int64_t depth, std::vector<double>& to) {
        to.assign(keys.size(), 0.0);
        if (depth > 0) m_kernels.rowProducts(of.data(), rows, depth, nullptr, nullptr, to.data());
        for (double& x : to) x = std::sqrt(x) * (1 + 2 * kUnit); // of the numbers before they were rounded
    };
    norms(m_keys, m_keyDepth, m_keyNorms);
    norms(m_values, m_valueDepth, m_valueNorms);
    const double scale = std::abs(walk.logScale), shift = std::abs(walk.logShift), reach = largest(m_keyNorms);
    const double perValue = std::sqrt(std::abs(walk.valueScale)),
                 least = std::sqrt(std::abs(walk.valueConstant)) + kTiny;
    const double size = perValue * largest(m_valueNorms) + least;
    const double rawReach = reach + 2 * lengthOf(centre), m = static_cast<double>(rows);
    m_perReach = (roundings(m_keyDepth) + 5) * kUnit * scale;
    m_perSize = (roundings(m_valueDepth) + 23 + 2 * shift) * kUnit +
                (scale * (static_cast<double>(m_keyDepth) + 12) * rawReach * rawReach +
                 static_cast<double>(m_valueDepth) + m + 2 * shift + 16) *
                    kDoubleUnit;
    m_slack = m * 1e-37 * std::max(1.0, size * size);
    for (std::int64_t i = 0; i < rows; ++i) {
        m_sizes[i] = static_cast<float>(perValue * m_valueNorms[i] + least);
        m_reaches[i] = static_cast<float>(m_keyNorms[i]) * m_sizes[i];
    }
    // A float holds these with 24 bits; 2^-150 would become 0.
    const auto fits = [](double x) { return x == 0 || (std::abs(x) > 1e-30 && std::abs(x) < 1e30); };
    return fits(walk.logScale) && fits(walk.valueScale) && fits(walk.logShift) && fits(walk.valueConstant) &&
           scale * reach * reach + shift < kMostExponent && reach < kMostLength && size < kMostLength &&
           m_perReach * reach * reach + m_perSize < kMostError;
}

void WalkIntervals::fillPanel(std::int64_t begin, std::int64_t end) {
    assert(begin % kMaxLanes == 0 && begin < end && end <= begin + kMaxLanes);
    m_begin = begin;
    m_kernels.interleave(m_keys.data() + begin * m_keyDepth, m_keyDepth, m_logScale, m_keyLanes.data());
    if (m_valueDepth > 0)
        m_kernels.interleave(m_values.data() + begin * m_valueDepth, m_valueDepth, m_valueScale, m_valueLanes.data());
    m_kernels.walkPanel({.keyLanes = m_keyLanes.data(),
                         .keys = m_keys.data(),
                         .valueLanes = m_valueDepth > 0 ? m_valueLanes.data() : m_keyLanes.data(),
                         .values = m_valueDepth > 0 ? m_values.data() : m_keys.data(),
                         .keyDepth = m_keyDepth,
                         .valueDepth = m_valueDepth,
                         .before = begin,
                         .rows = (end + kWalkRows - 1) / kWalkRows * kWalkRows,
                         .signs = m_signs.data(),
                         .sizes = m_sizes.data(),
                         .reaches = m_reaches.data(),
                         .logShift = m_logShift,
                         .valueConstant = m_valueConstant,
                         .y = m_y.data(),
                         .sizeSums = m_sizeSums.data(),
                         .reachSums = m_reachSums.data(),
                         .matrix = m_matrix.data()});
}

double WalkIntervals::bound(std::int64_t lane) const {
    const std::int64_t row = m_begin + lane;
    const double error = m_perReach * m_keyNorms[row] * m_reachSums[lane] + m_perSize * m_sizeSums[lane];
    return kSecondOrder * double{m_sizes[row]} * error + m_slack;
}

} // namespace kvscope::cpu
