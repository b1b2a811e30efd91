#pragma once

#include <cstdint>
#include <utility>

namespace kvscope {

/// Names one random number. The number is a function of these fields alone, never of thread, order or device,
/// so results do not depend on thread count and one uniform can be shown per token.
struct RandomKey {
    std::uint64_t seed = 0;
    std::uint32_t layer = 0;
    std::uint32_t kvHead = 0;
    std::uint32_t round = 0; ///< round or bucket
    std::uint32_t token = 0;
    std::uint32_t slot = 0;
};

/// Uniform double in [0, 1) with 53 random bits: Philox-4x32-10 (Salmon et al., SC 2011) over the fields of `key`.
double uniformAt(const RandomKey& key);

/// Two independent standard normal numbers for a key: Box-Muller over two uniforms, the second of which has slot +
/// 2^31.
std::pair<double, double> gaussianPairAt(RandomKey key);

/// The first number of gaussianPairAt.
inline double gaussianAt(const RandomKey& key) { return gaussianPairAt(key).first; }

} // namespace kvscope
