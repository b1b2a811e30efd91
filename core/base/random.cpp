// Counter-based random numbers: Philox-4x32 with ten rounds. The seed is the key, the place of the number is the
// counter, so any number can be computed alone and in any order.
#include "core/base/random.h"

#include <array>
#include <cmath>
#include <numbers>

namespace kvscope {

namespace {

using Counter = std::array<std::uint32_t, 4>;
using Key = std::array<std::uint32_t, 2>;

Counter philoxRound(const Counter& c, const Key& k) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53u} * c[0];
    const std::uint64_t p1 = std::uint64_t{0xCD9E8D57u} * c[2];
    return {static_cast<std::uint32_t>(p1 >> 32) ^ c[1] ^ k[0], static_cast<std::uint32_t>(p1),
            static_cast<std::uint32_t>(p0 >> 32) ^ c[3] ^ k[1], static_cast<std::uint32_t>(p0)};
}

Counter philox(Counter c, Key k) {
    for (int round = 0; round < 10; ++round) {
        c = philoxRound(c, k);
        k[0] += 0x9E3779B9u; // Weyl sequence of the golden ratio
        k[1] += 0xBB67AE85u; // and of sqrt(3) - 1
    }
    return c;
}

} // namespace

double uniformAt(const RandomKey& key) {
    // Layer and head share a word: no model has 65,536 of either.
    const Counter place = {key.token, key.slot, key.round, (key.layer << 16) ^ key.kvHead};
    const Key seed = {static_cast<std::uint32_t>(key.seed), static_cast<std::uint32_t>(key.seed >> 32)};
    const Counter bits = philox(place, seed);
    const std::uint64_t mantissa = ((std::uint64_t{bits[0]} << 32) | bits[1]) >> 11;
    return static_cast<double>(mantissa) * 0x1.0p-53;
}

std::pair<double, double> gaussianPairAt(RandomKey key) {
    const double radius = std::sqrt(-2 * std::log(1 - uniformAt(key)));
    key.slot += 0x80000000u;
    const double angle = 2 * std::numbers::pi * uniformAt(key);
    return {radius * std::cos(angle), radius * std::sin(angle)};
}

} // namespace kvscope
