// The kernel matrix of a balancing walk, computed in full for views, and the band of Q under fair coins.
#include "core/policies/balance/balance_kernel.h"

#include "core/base/random.h"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace kvscope {

namespace {

constexpr std::uint32_t kCoinSlot = 1U << 17; // RandomKey::slot of these coins; walks use lower ones
constexpr double kLargestExponent = 500;      // as in the engine

double dot(const double* a, const double* b, std::size_t size) {
    double sum = 0;
    for (std::size_t i = 0; i < size; ++i) sum += a[i] * b[i];
    return sum;
}

/// The walk's rows of a head, widened to double.
std::vector<double> gather(const HostTensor& rows, const BalancingWalk& walk) {
    const auto width = static_cast<std::size_t>(rows.shape[1]);
    std::vector<double> wide;
    wide.reserve(walk.rows.size() * width);
    for (const TokenIndex row : walk.rows) {
        const auto from = rows.data.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(row) * width);
        wide.insert(wide.end(), from, from + static_cast<std::ptrdiff_t>(width));
    }
    return wide;
}

void subtractCentre(std::vector<double>& keys, const BalancingWalk& walk, std::size_t d, std::span<const float> given) {
    std::vector<double> centre(d);
    if (walk.meanOver > 0) {
        for (std::size_t i = 0; i < keys.size(); ++i) centre[i % d] += keys[i] / static_cast<double>(walk.meanOver);
    } else if (!given.empty()) {
        centre.assign(given.begin(), given.end());
    }
    for (std::size_t i = 0; i < keys.size(); ++i) keys[i] -= centre[i % d];
}

} // namespace

std::vector<double> walkKernel(const BalancingWalk& walk, const HostTensor& keys, const HostTensor& values,
                               std::span<const float> centre) {
    const std::size_t m = walk.rows.size(), d = static_cast<std::size_t>(keys.shape[1]);
    const std::size_t dv = values.empty() ? 0 : static_cast<std::size_t>(values.shape[1]);
    std::vector<double> k = gather(keys, walk), v = values.empty() ? std::vector<double>() : gather(values, walk);
    subtractCentre(k, walk, d, centre);
    std::vector<double> kernel(m * m);
    for (std::size_t i = 0; i < m; ++i)
        for (std::size_t j = 0; j <= i; ++j) {
            const double exponent = walk.logScale * dot(&k[i * d], &k[j * d], d) - walk.logShift;
            double product = dv == 0 ? 0 : walk.valueScale * dot(&v[i * dv], &v[j * dv], dv);
            if (!walk.weights.empty()) product *= walk.weights[i] * walk.weights[j];
            kernel[i * m + j] = std::exp(std::min(exponent, kLargestExponent)) * (product + walk.valueConstant);
            kernel[j * m + i] = kernel[i * m + j];
        }
    return kernel;
}

CoinBand coinBand(std::span<const double> kernel, std::span<const char> silent, std::uint64_t seed, int runs) {
    const auto m = static_cast<std::size_t>(std::llround(std::sqrt(static_cast<double>(kernel.size()))));
    assert(m * m == kernel.size() && runs > 0);
    std::vector<double> signs(m), q(m * static_cast<std::size_t>(runs)); // [row, run]
    for (int run = 0; run < runs; ++run) {
        double total = 0;
        for (std::size_t i = 0; i < m; ++i) {
            const RandomKey key{seed, 0, 0, static_cast<std::uint32_t>(run), static_cast<std::uint32_t>(i), kCoinSlot};
            const bool quiet = !silent.empty() && silent[i] != 0;
            signs[i] = quiet ? 0 : uniformAt(key) < 0.5 ? 1 : -1;
            const double y = dot(&kernel[i * m], signs.data(), i);
            total += 2 * signs[i] * y + signs[i] * signs[i] * kernel[i * m + i];
            q[i * static_cast<std::size_t>(runs) + static_cast<std::size_t>(run)] = total;
        }
    }
    CoinBand band;
    const std::ptrdiff_t low = (runs - 1) / 10, high = runs - 1 - low;
    for (std::size_t i = 0; i < m; ++i) {
        const auto begin = q.begin() + static_cast<std::ptrdiff_t>(i) * runs;
        std::sort(begin, begin + runs);
        band.low.push_back(begin[low]);
        band.high.push_back(begin[high]);
    }
    return band;
}

} // namespace kvscope
