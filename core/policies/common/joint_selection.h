#pragma once

#include "core/policies/policy.h"

namespace kvscope {

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
