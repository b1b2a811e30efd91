#pragma once

#include <cstdint>

#ifdef __CUDACC__
#define KVSCOPE_PORTABLE __host__ __device__ __forceinline__
#else
// Always inlined, so that no copy compiled for one instruction set is ever linked into code for another.
#define KVSCOPE_PORTABLE [[gnu::always_inline]] inline
#endif

namespace kvscope {

/// a * b + c, rounded twice.
struct MultiplyThenAdd {
    template <class Number> KVSCOPE_PORTABLE Number operator()(Number a, Number b, Number c) const { return a * b + c; }
};

/// e^x at most 2 units in the last place from std::exp (measured in tests/base; hardly ever more than 1),
/// 0 below -708, +infinity above 709.7; NaN stays NaN. Only +, -, *, comparisons and bits: with contraction off every
/// compiler, instruction set and device gives the same result.
/// Method: x = k ln 2 + r with |r| <= ln(2)/2, e^x = 2^k e^r, e^r by its Taylor polynomial of degree 13.
/// Number is double, or a compiler's vector of doubles with Bits its vector of 64-bit integers: one formula for both.
/// `multiplyAdd` makes a b + c; a fused one is as near to e^x and has other bits.
template <class Number, class Bits, class MultiplyAdd = MultiplyThenAdd>
KVSCOPE_PORTABLE Number portableExpOf(Number x, const MultiplyAdd& multiplyAdd = {}) {
    constexpr double kLog2e = 0x1.71547652b82fep+0;
    constexpr double kLn2High = 0x1.62e42fefa3800p-1; // 42 bits: k times it is exact
    constexpr double kLn2Low = 0x1.ef35793c76730p-45;
    constexpr double kRound = 0x1.8p52; // adding it leaves the nearest integer in the low mantissa bits
    const Number zero{}, lowest = zero - 708.0, highest = zero + 710.0;

    // Clamped before the bits are made, so that 2^k below is always a normal number. NaN fails both comparisons.
    Number t = x < lowest ? lowest : x;
    t = t > highest ? highest : t;
    const Number shifted = multiplyAdd(t, zero + kLog2e, zero + kRound);
    const Number k = shifted - kRound;
    const Number r = multiplyAdd(k, zero - kLn2Low, multiplyAdd(k, zero - kLn2High, t));

    Number p = zero + 1.0 / 6227020800.0;
    p = multiplyAdd(p, r, zero + 1.0 / 479001600.0);
    p = multiplyAdd(p, r, zero + 1.0 / 39916800.0);
    p = multiplyAdd(p, r, zero + 1.0 / 3628800.0);
    p = multiplyAdd(p, r, zero + 1.0 / 362880.0);
    p = multiplyAdd(p, r, zero + 1.0 / 40320.0);
    p = multiplyAdd(p, r, zero + 1.0 / 5040.0);
    p = multiplyAdd(p, r, zero + 1.0 / 720.0);
    p = multiplyAdd(p, r, zero + 1.0 / 120.0);
    p = multiplyAdd(p, r, zero + 1.0 / 24.0);
    p = multiplyAdd(p, r, zero + 1.0 / 6.0);
    p = multiplyAdd(p, r, zero + 0.5);
    // Adds the small part first, so that only the last addition rounds at the size of the result.
    p = 1.0 + multiplyAdd(r * r, p, r);

    // 2^(k-1) * 2, because k may be 1024 just below the overflow. A product keeps NaN; adding to the bits would not.
    const Number scale = __builtin_bit_cast(Number, (__builtin_bit_cast(Bits, shifted) + 1022) << 52);
    const Number y = p * scale * 2.0;
    return x < lowest ? zero : y;
}

KVSCOPE_PORTABLE double portableExp(double x) { return portableExpOf<double, std::uint64_t>(x); }

/// tanh x = 1 - 2 / (e^(2x) + 1), absolute error below 5e-16 (relative error near 0 is larger: it is for logits, where
/// the absolute error counts).
template <class Number, class Bits> KVSCOPE_PORTABLE Number portableTanhOf(Number x) {
    return 1.0 - 2.0 / (portableExpOf<Number, Bits>(2.0 * x) + 1.0);
}

KVSCOPE_PORTABLE double portableTanh(double x) { return portableTanhOf<double, std::uint64_t>(x); }

} // namespace kvscope
