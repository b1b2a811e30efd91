// The balancing walk as BalanceKV's Algorithm 2 says it: the full kernel of every pair, one number at a time.
#include "tests/support/naive/naive_engine.h"

#include <algorithm>
#include <cmath>

namespace kvscope::naive {

namespace {

Numbers centreOf(const Balancing& input, const BalancingWalk& walk) {
    Numbers centre(static_cast<std::size_t>(input.keys.width), 0.0);
    for (std::int64_t c = 0; c < input.keys.width; ++c) {
        double& x = centre[static_cast<std::size_t>(c)];
        if (walk.meanOver > 0) {
            for (const TokenIndex row : walk.rows) x += input.keys.at(walk.head, row, c);
            x /= static_cast<double>(walk.meanOver);
        } else if (input.centres.rows > 0) {
            x = input.centres.at(walk.head, 0, c);
        }
    }
    return centre;
}

} // namespace

Numbers balancingKernel(const Balancing& input, const BalancingWalk& walk) {
    const std::size_t m = walk.rows.size();
    const Numbers centre = centreOf(input, walk);
    Numbers kernel(m * m);
    for (std::size_t i = 0; i < m; ++i)
        for (std::size_t j = 0; j < m; ++j) {
            double logit = 0, product = 0;
            for (std::int64_t c = 0; c < input.keys.width; ++c)
                logit += (input.keys.at(walk.head, walk.rows[i], c) - centre[static_cast<std::size_t>(c)]) *
                         (input.keys.at(walk.head, walk.rows[j], c) - centre[static_cast<std::size_t>(c)]);
            for (std::int64_t c = 0; c < input.values.width; ++c)
                product += input.values.at(walk.head, walk.rows[i], c) * input.values.at(walk.head, walk.rows[j], c);
            if (!walk.weights.empty()) product *= walk.weights[i] * walk.weights[j];
            kernel[i * m + j] = std::exp(std::fmin(500, walk.logScale * logit - walk.logShift)) *
                                (walk.valueScale * product + walk.valueConstant);
        }
    return kernel;
}

Balanced balancingWalk(const Balancing& input, const BalancingWalk& walk) {
    const std::size_t m = walk.rows.size();
    const Numbers kernel = balancingKernel(input, walk);
    Balanced out;
    for (std::size_t i = 0; i < m; ++i) {
        double y = 0;
        for (std::size_t j = 0; j < i; ++j) y += kernel[i * m + j] * out.signs[j];
        if (std::abs(y) > walk.failAbove) {
            out.failedAt = static_cast<std::int64_t>(i);
            break;
        }
        double sign = walk.uniforms[i] < 0.5 - walk.gamma * y ? 1 : -1;
        if (i == 0 && walk.firstIsPlus) sign = 1;
        if (!walk.silent.empty() && walk.silent[i] != 0) sign = 0;
        out.signs.push_back(sign);
        out.products.push_back(y);
        out.diagonal.push_back(kernel[i * m + i]);
    }
    return out;
}

Numbers blockMeanProducts(const Block& keys, std::int64_t block) {
    Numbers out;
    for (std::int64_t h = 0; h < keys.heads; ++h)
        for (std::int64_t i = 0; i < keys.rows; ++i) {
            double sum = 0; // over the pairs, as BalanceKV's code has it
            for (std::int64_t j = i / block * block; j < std::min(keys.rows, (i / block + 1) * block); ++j)
                for (std::int64_t c = 0; c < keys.width; ++c) sum += keys.at(h, i, c) * keys.at(h, j, c);
            out.push_back(sum / static_cast<double>(block));
        }
    return out;
}

} // namespace kvscope::naive
