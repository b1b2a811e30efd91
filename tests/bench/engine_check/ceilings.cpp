// Measures the machine, not the engine: twelve independent multiply-add chains per thread, and copies of large blocks.
#include "tests/bench/engine_check/ceilings.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

namespace kvscope::check {

namespace {

constexpr int kChains = 12;
constexpr std::int64_t kSteps = 4'000'000;

double secondsOf(int threads, const std::function<void()>& work) {
    double best = 1e30;
    for (int repeat = 0; repeat < 3; ++repeat) {
        const auto start = std::chrono::steady_clock::now();
        std::vector<std::jthread> team;
        for (int t = 1; t < threads; ++t) team.emplace_back(work);
        work();
        team.clear();
        best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
    return best;
}

template <class Vector> [[gnu::always_inline]] inline void chains() {
    Vector sum[kChains];
    const Vector factor = Vector{} + 0.999F;
    for (int c = 0; c < kChains; ++c) { // else the compiler sees twelve equal chains and computes one of them
        sum[c] = Vector{};
        asm volatile("" : "+m"(sum[c]));
    }
    for (std::int64_t i = 0; i < kSteps; ++i)
#pragma GCC unroll 12
        for (int c = 0; c < kChains; ++c) sum[c] = sum[c] * factor + factor;
    for (int c = 0; c < kChains; ++c) asm volatile("" : : "m"(sum[c])); // keeps the loop
}

typedef double Double2 __attribute__((vector_size(16)));
typedef double Double4 __attribute__((vector_size(32)));
typedef double Double8 __attribute__((vector_size(64)));
typedef float Float4 __attribute__((vector_size(16)));
typedef float Float8 __attribute__((vector_size(32)));
typedef float Float16 __attribute__((vector_size(64)));

void doubleBase() { chains<Double2>(); }
void floatBase() { chains<Float4>(); }
[[gnu::target("avx2,fma")]] void doubleAvx2() { chains<Double4>(); }
[[gnu::target("avx2,fma")]] void floatAvx2() { chains<Float8>(); }
[[gnu::target("avx512f")]] void doubleAvx512() { chains<Double8>(); }
[[gnu::target("avx512f")]] void floatAvx512() { chains<Float16>(); }

void copyBlock() {
    constexpr std::size_t kBytes = std::size_t{64} << 20;
    static thread_local std::vector<char> from(kBytes, 1), to(kBytes, 2);
    for (int repeat = 0; repeat < 4; ++repeat) {
        std::memcpy(to.data(), from.data(), kBytes);
        asm volatile("" : : "r"(to.data()) : "memory");
    }
}

/// Bytes per second of one copying thread after its pages exist, times the threads that copy beside it.
double copyRate(int threads) {
    std::vector<double> seconds(static_cast<std::size_t>(threads));
    std::vector<std::jthread> team;
    for (double& mine : seconds)
        team.emplace_back([&mine] {
            copyBlock(); // makes the pages
            mine = secondsOf(1, copyBlock);
        });
    team.clear();
    double rate = 0;
    for (double s : seconds) rate += 4.0 * 2 * double(std::size_t{64} << 20) / s;
    return rate;
}

} // namespace

Ceilings measureCeilings(int threads) {
    __builtin_cpu_init();
    const bool wide = __builtin_cpu_supports("avx512f"), middle = __builtin_cpu_supports("fma");
    const double lanes = wide ? 8 : middle ? 4 : 2;
    const double operations = 2.0 * kChains * kSteps * threads * lanes;
    return {operations / secondsOf(threads, wide     ? doubleAvx512
                                            : middle ? doubleAvx2
                                                     : doubleBase),
            2 * operations /
                secondsOf(threads, wide     ? floatAvx512
                                   : middle ? floatAvx2
                                            : floatBase),
            copyRate(threads)};
}

} // namespace kvscope::check
