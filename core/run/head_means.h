#pragma once

#include "core/run/run.h"

#include <optional>
#include <span>

namespace kvscope {

/// Mean over the query heads of this KV head, or over all heads, of numbers [Hq]. NaN are left out; NaN if none is
/// left.
double meanOverHeads(std::span<const double> perQueryHead, const LayerInfo& layer, std::optional<KvHeadIndex> head);

/// Mean output error over the query heads of one GQA group; NaN where nothing was measured.
double meanErrorOf(const RunResult& result, const CaptureReader& capture, KvHeadIndex head);
double meanMassOf(const RunResult& result, const CaptureReader& capture, KvHeadIndex head);

/// Tokens that a query head attends to: with this KV head, or the mean over all KV heads. KV heads that a recorded list
/// leaves out do not count; NaN if none is left.
double meanAttendedTokens(const RunResult& result, std::optional<KvHeadIndex> head = {});
/// The same as a share of the tokens before the cut: the realised retention.
double keptShareOf(const RunResult& result, std::optional<KvHeadIndex> head = {});

/// Whether this is BalanceKV without room to balance: sinks and recents took the whole budget. A note of the result
/// says so, and whatever shows its numbers has to say it too.
bool balancedNothing(const RunResult& result);

} // namespace kvscope
