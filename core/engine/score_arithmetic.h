#pragma once

#include "core/base/host_tensor.h"
#include "core/base/index.h"
#include "core/engine/attention.h"

#include <cstdint>
#include <span>
#include <vector>

namespace kvscope {

// Arithmetic on score tables [H, n], one number per head and token. Tables are d times smaller than the keys that they
// come from, so this runs on the host whatever engine computed them: in double, each result rounded to float once, one
// thread. NaN passes through until `topK` refuses it.

enum class PoolKind { Average, Max };

/// z = (x - mean) / max(std, floor). z = 0 where the scores are constant up to float rounding (C3).
struct Standardisation {
    bool jointly = false;   ///< over all heads; else each head by itself
    std::int64_t chunk = 0; ///< statistics over so many rows at a time; 0: all rows
    bool sample = false;    ///< divide by count - 1 instead of count
    double floor = 0;       ///< least std to divide by
};

struct TopKHead {
    std::vector<TokenIndex> kept; ///< ascending rows
    float margin = 0;             ///< smallest kept unprotected score - largest evicted one; +infinity if no choice
};

/// [H, n] -> [H, n], centred window of odd width. Average: zero-padded with constant divisor; max: not padded.
HostTensor pool(const HostTensor& scores, PoolKind kind, std::int64_t width);
/// [Hq, n] -> [Hkv, n] over the query heads of each KV head, in the order of the query heads.
HostTensor reduceGroups(const HostTensor& scores, std::span<const std::int32_t> gqaGroupOf, std::int64_t numKvHeads,
                        GroupRule rule);
/// factor * score, entry by entry (to flip the sign of scores).
HostTensor scale(HostTensor scores, double factor);
HostTensor standardise(HostTensor scores, const Standardisation& how);
/// a + weight b and a b, entry by entry.
HostTensor blend(HostTensor a, const HostTensor& b, double weight);
HostTensor multiply(HostTensor a, const HostTensor& b);

/// The counts[h] best of the m scores of each head, 0 <= counts[h] <= m, in the order (score descending, index
/// ascending). Rows that are kept before any other: the first `protectFirst` in ascending order, then the last
/// `protectLast` from the end backwards, as far as the count reaches. Throws Error on NaN, naming token and head.
std::vector<TopKHead> topK(const HostTensor& scores, std::span<const std::int64_t> counts,
                           std::int64_t protectFirst = 0, std::int64_t protectLast = 0);

/// Columns [begin, end).
HostTensor columnRange(const HostTensor& scores, std::int64_t begin, std::int64_t end);
/// Lists of equal length m, one per head -> [H, m].
HostTensor gatherColumns(const HostTensor& scores, const std::vector<std::vector<TokenIndex>>& columns);
/// [H, n] at columns [begin, begin + n) of [H, count]; `value` elsewhere.
HostTensor padColumns(const HostTensor& scores, std::int64_t begin, std::int64_t count, float value);
/// [1, n] -> [heads, n]: the same row for every head.
HostTensor repeatHead(const HostTensor& scores, std::int64_t heads);

} // namespace kvscope
