#pragma once

#include "core/engine/leverage.h"
#include "core/policies/policy.h"

namespace kvscope {

/// The parameters of leverage scores, all of stage Features: sketch, sketch_size, sketch_scope, centred, token_chunk,
/// route, regulariser, regulariser_strength. Defaults: a Gaussian sketch of 64 columns, no centring.
ParameterTable leverageParameters();

/// What to compute; singular values are only for logs.
enum class LeverageParts { Scores, ScoresAndSpectrum };

/// Leverage of the rows [begin, end) of input.preRopeKeys [Hkv, m, d], as the parameters say (Compactor, Algorithm 1).
/// The sketch comes from input.random: Gaussian entries from `sketch` divided by the root of k; SRHT signs and columns
/// from `uniform`, rounds 1 and 2, with columns in the order of ascending uniforms. Key: seed, layer, KV head; a sketch
/// shared by all heads and layers has layer 0 and head 0. Throws Error for a clamp by a route without eigenvalues.
Leverage leverageOf(const PolicyInput& input, const ParameterValues& values, std::int64_t begin, std::int64_t end,
                    LeverageParts parts);

/// Whether the scores, apart from a sketch, are k^T (K^T K)^+ k over all keys, as in Theorem 2: neither centred, in
/// chunks, regularised nor of a part of the keys.
bool isPlainLeverage(const ParameterValues& values);

/// Notes for the reader of a result: a sketch cut to the key's width.
std::vector<std::string> leverageNotes(const PolicyInput& input, const ParameterValues& values);

} // namespace kvscope
