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

} // namespace kvscope
