#pragma once

#include "core/capture/capture.h"
#include "core/run/run.h"

#include <cstdint>
#include <string>
#include <vector>

namespace kvscope {

/// Longer tensors stay in their file, and the rows that are needed are read: the keys of 8 heads of 128 numbers take
/// 1 GiB at this length.
inline constexpr std::int64_t kMostRowsInMemory = std::int64_t{1} << 18;

/// Rows [begin, end) of a captured tensor [H, rows, d].
struct LayerRead {
    TensorRole role = TensorRole::Keys;
    std::int64_t begin = 0, end = 0;
    friend bool operator==(const LayerRead&, const LayerRead&) = default;
};

/// Number of rows of the whole tensor.
std::int64_t rowsOf(TensorRole role, const CaptureInfo& capture, const LayerInfo& layer);

/// Queries of a layer as rows of the captured ones.
struct QueryRows {
    std::int64_t begin = 0, end = 0;
    TokenIndex firstQuery = 0; ///< token of row `begin`
    std::int64_t wanted = 0;   ///< number of queries if all had been captured

    std::int64_t count() const { return end - begin; }
};

/// The queries before the cut that the policy reads. count() <= 0: it reads none, or none was captured.
QueryRows policyQueries(const RunRequest& request);
/// The queries after the cut, on which a result is measured; with cut "none" the last 256. count() as above.
QueryRows evaluationQueries(const RunRequest& request);

/// Their rows alone, or all captured rows if they are at least half of those or more than kMostRowsInMemory.
LayerRead readOf(const QueryRows& queries, const LayerInfo& layer);

/// What the policy reads of a layer and the capture holds nothing of: "queries" or "keys before RoPE"; else empty.
std::string missingInput(const PolicySpec& policy, const CaptureReader& capture, const LayerInfo& layer);

/// What a run reads when none of its intermediate results is cached, without repetition.
std::vector<LayerRead> readsOf(const RunRequest& request);

} // namespace kvscope
