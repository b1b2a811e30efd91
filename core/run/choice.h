#pragma once

#include "core/run/run.h"

#include <cstddef>
#include <memory>

namespace kvscope {

constexpr std::size_t kMostRowsAtOnce = std::size_t{1} << 19;

/// What the policy of a request keeps, without measures, where that takes only milliseconds: the scores are cached,
/// have at most kMostRowsAtOnce rows, and no file is read. Otherwise returns null immediately, and the caller computes
/// the choice on a worker. Neither waits for nor uses another thread, so the GUI thread may call it.
std::shared_ptr<const RunResult> chooseAtOnce(const LayerRunner& runner, const RunRequest& request);

/// The result of an existing choice with its measures, as LayerRunner::run would return it.
std::shared_ptr<const RunResult> measureChoice(const LayerRunner& runner, const RunResult& chosen,
                                               const Checkpoint& checkpoint);

} // namespace kvscope
