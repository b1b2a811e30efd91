#pragma once

#include "core/policies/policy_input.h"

namespace kvscope {

/// The usual select stage: protected rows first, as far as the count allows, then stable top-k of the total score.
RowSelection keepBest(const PolicyInput& input, const HostTensor& total, const Protection& protection,
                      std::int64_t count);

/// The same by scores [Hq, m]: every query head chooses `count` rows for itself, and `heads` become the unions over the
/// GQA groups.
RowSelection keepBestPerQueryHead(const PolicyInput& input, const HostTensor& scores, const Protection& protection,
                                  std::int64_t count);

/// Every row of every KV head, without a decision.
RowSelection keepEverything(const PolicyInput& input);

/// A choice among all heads of a layer together: heads may keep different numbers of tokens.
struct JointRequest {
    HostTensor total;           ///< [Hkv, m]
    std::int64_t entries = 0;   ///< rows kept, summed over the heads; protected ones are among them
    Protection protection = {}; ///< of every head; protected rows rank above every score
    std::int64_t page = 1;      ///< each head is filled up with its next best rows to a multiple of this (C9)
};

/// Order: score descending, then row, then head. A head may keep nothing. If the entries do not suffice for the
/// protected rows, the earliest of them stay (C9). Throws Error for NaN.
RowSelection keepBestJointly(const JointRequest& request);

} // namespace kvscope
