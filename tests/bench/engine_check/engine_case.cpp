// Inputs and the measure of error that all cases share.
#include "tests/bench/engine_check/engine_case.h"

#include "tests/support/half_float.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>

namespace kvscope::check {

double errorOf(const std::vector<float>& got, const naive::Numbers& expected) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    if (got.size() != expected.size()) return kInfinity;
    double scale = 0, worst = 0;
    for (double x : expected) scale = std::isfinite(x) ? std::max(scale, std::abs(x)) : scale;
    for (std::size_t i = 0; i < got.size(); ++i) {
        if (double{got[i]} == expected[i]) continue;
        const double error = std::abs(double{got[i]} - expected[i]) / (std::abs(expected[i]) + 1e-6 * scale);
        worst = std::max(worst, std::isnan(error) ? kInfinity : error);
    }
    return worst;
}

double fastAttentionError(const naive::Block& queries, const naive::Block& keys, const AttentionRule& rule) {
    double largest = 0;
    for (std::size_t h = 0; h < rule.gqaGroupOf.size(); ++h)
        for (std::int64_t i = 0; i < queries.rows; ++i)
            for (std::int64_t j = 0; j < keys.rows; ++j) {
                double sizes = 0;
                for (std::int64_t c = 0; c < keys.width; ++c)
                    sizes += std::abs(queries.at(std::int64_t(h), i, c) * keys.at(rule.gqaGroupOf[h], j, c));
                largest = std::max(largest, rule.scaling * sizes);
            }
    return 0x1.0p-24 * (8 + 4 * largest);
}

double allowedErrorOf(const EngineCase& c, const Engine& engine) {
    if (!engine.arithmetic().starts_with("fast") || c.fastError == 0) return c.allowedError;
    const bool onGpu = engine.name() == "cuda" || engine.name() == "kernels";
    return std::max(c.allowedError, c.fastError + (onGpu ? kGpuExponential : 0));
}

naive::Block randomBlock(unsigned seed, std::int64_t heads, std::int64_t rows, std::int64_t width, double spread,
                         double shift) {
    naive::Block block{heads, rows, width, std::vector<float>(static_cast<std::size_t>(heads * rows * width))};
    std::mt19937 generator(seed);
    for (float& x : block.numbers) {
        // Four 16-bit uniforms: variance 4/12, so sqrt(3) makes it 1. No library distribution: those differ.
        const std::uint32_t a = generator(), b = generator();
        const double sum = double((a & 0xffff) + (a >> 16) + (b & 0xffff) + (b >> 16)) / 65536 - 2;
        x = static_cast<float>(shift + spread * sum * std::sqrt(3.0));
    }
    return block;
}

naive::Block storedAs(StoredType type, naive::Block block) {
    block.stored = type;
    if (type == StoredType::Bfloat16)
        for (float& x : block.numbers) x = std::bit_cast<float>(std::bit_cast<std::uint32_t>(x) & 0xffff0000U);
    if (type == StoredType::Float16)
        for (float& x : block.numbers) x = testing::halfOf(testing::halfBits(x));
    return block;
}

Tensor uploadRows(const Engine& engine, const naive::Block& block) {
    return engine.upload({Shape{block.heads, block.rows, block.width}, block.numbers, block.stored});
}

HostTensor tableOf(const naive::Block& block) { return {Shape{block.heads, block.width}, block.numbers}; }

std::vector<EngineCase> allCases() {
    std::vector<EngineCase> all;
    for (const auto& cases : {keyCases(), attentionCases(), spectrumCases(), compactorCases(), mapCases(), rowCases(),
                              balancingCases(), clusterCases(), speedCases()})
        all.insert(all.end(), cases.begin(), cases.end());
    return all;
}

} // namespace kvscope::check
