#pragma once

#include "app/study/makers/view_data_maker.h"
#include "app/study/session.h"

#include <optional>
#include <vector>

namespace kvscope {

/// All panes of a session, in order.
std::vector<std::size_t> allPanesOf(const Session& session);

/// A session on its open capture as views see it, without the data of any view. Panes that are not wanted stay empty;
/// the active one is the session's where it is wanted, else the first wanted one. `random`: instead of drawn
/// numbers. Throws Error or Cancelled.
ViewInput headlessInput(const Session& session, std::shared_ptr<const CaptureReader> capture,
                        const std::vector<std::size_t>& wanted, const LayerRunner& runner, const Checkpoint& checkpoint,
                        std::shared_ptr<const RandomSource> random = {});

/// The data of a view for that input, at a size in device pixels; empty for a view that shows results only. Throws
/// Error or Cancelled.
DataState headlessData(const Session& session, const View& view, const ViewInput& input,
                       std::optional<Viewport::Range> range, std::int64_t width, std::int64_t height,
                       const LayerRunner& runner, const Checkpoint& checkpoint,
                       std::shared_ptr<const RandomSource> random = {});

} // namespace kvscope
