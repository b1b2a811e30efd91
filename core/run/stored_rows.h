#pragma once

#include "core/run/run.h"

#include <cstdint>
#include <optional>

namespace kvscope {

struct CaptureInfo; // core/capture/capture.h

/// Rows of the cache that a KV head stores. Duplicates count, also those of query heads with sets of their own; a token
/// that is only in the denominator's sample stores no value.
struct StoredRows {
    std::uint64_t keys = 0, values = 0;
};
StoredRows storedRowsOf(const HeadSelection& head);

/// The same in tokens with one key and one value each, the unit of a budget. Estimators that store weighted entries
/// store more or less than the distinct tokens that they keep.
double storedTokens(const HeadSelection& head, const CaptureInfo& info);
/// storedTokens of this KV head, or the mean over all KV heads. Heads that a recorded list leaves out do not count; NaN
/// if none remains.
double meanStoredTokens(const RunResult& result, std::optional<KvHeadIndex> head = {});
/// storedTokens of a KV head that stores another number of tokens than it keeps (weighted lists); nothing for other
/// heads, and where query heads have sets of their own.
std::optional<double> storedOtherwise(const RunResult& result, KvHeadIndex head);

} // namespace kvscope
