#pragma once

#include "core/run/run.h"

#include <optional>
#include <span>

namespace kvscope {

struct LayerInfo; // core/capture/capture.h

/// Mean of numbers [Hq] over the query heads of this KV head, or over all heads. NaN are left out; NaN if nothing
/// remains.
double meanOverHeads(std::span<const double> perQueryHead, const LayerInfo& layer, std::optional<KvHeadIndex> head);

/// Mean output error over the query heads of one GQA group; NaN where nothing was measured.
double meanErrorOf(const RunResult& result, const CaptureReader& capture, KvHeadIndex head);
double meanMassOf(const RunResult& result, const CaptureReader& capture, KvHeadIndex head);

/// Mean number of tokens that a query head of this KV head, or of any KV head, attends to. KV heads that a recorded
/// list leaves out do not count; NaN if none remains.
double meanAttendedTokens(const RunResult& result, std::optional<KvHeadIndex> head = {});
/// The same as a share of the tokens before the cut: the realised retention.
double keptShareOf(const RunResult& result, std::optional<KvHeadIndex> head = {});

/// Whether a balancing policy had no room to balance: the protected tokens took the whole budget. A note of the result
/// says so, and all code that shows its numbers must say so too.
bool balancedNothing(const RunResult& result);

} // namespace kvscope
