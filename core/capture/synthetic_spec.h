#pragma once

#include "core/capture/capture.h"

#include <cstdint>

namespace kvscope {

/// A synthetic prompt with known geometry. Keys before RoPE are a common direction (collinearity) plus the centre of
/// the sentence's cluster plus noise; with RoPE the fast coordinates form rings. The first tokens are sinks (short keys
/// with large attention weights). A needle has its own direction, to which the queries of question and answer point.
struct SyntheticSpec {
    std::int64_t tokens = 4096;
    int layers = 2;
    int queryHeads = 8, kvHeads = 2; ///< query head h reads KV head h / (queryHeads / kvHeads)
    int headDim = 64;                ///< even, at least 4; also of the values
    std::uint64_t seed = 0;
    int clusters = 12; ///< 0: none
    int sinks = 4;
    std::int64_t needleBegin = -1;  ///< -1: at 45 % of the tokens
    std::int64_t needleLength = 14; ///< 0: no needle, no question, no answer
    double collinearity = 0.5;      ///< [0, 1): share of the common direction in a key's squared length
    bool rope = true;               ///< half layout over the whole head
    StoredType storedType = StoredType::Bfloat16;
    std::int64_t queryWindow = 0; ///< number of last queries stored; 0: all
};

} // namespace kvscope
