#pragma once

#include "core/run/run.h"

#include <cstddef>
#include <memory>

namespace kvscope {

constexpr std::size_t kMostRowsAtOnce = std::size_t{1} << 19;

/// What the policy of a request keeps, without measures, where that takes some milliseconds: it ranks scores that are
/// cached, of kMostRowsAtOnce rows at most, and nothing is read from a file. Else null, at once: the caller computes it
/// on a worker. Waits for no other thread, and uses none, so that a window's thread may call it.
std::shared_ptr<const RunResult> chooseAtOnce(const LayerRunner& runner, const RunRequest& request);

/// The result of a choice that is there with its measures, as LayerRunner::run would return it.
std::shared_ptr<const RunResult> measureChoice(const LayerRunner& runner, const RunResult& chosen,
                                               const Checkpoint& checkpoint);

} // namespace kvscope
