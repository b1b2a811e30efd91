#pragma once

#include "app/study/makers/view_data_maker.h"
#include "app/study/session.h"

#include <optional>

namespace kvscope {

// A session on its open capture: requests of its panes and views, and the input of views. Window, command line, report
// and lessons use these functions, so that equal sessions give equal pictures. `cut` is the session's own cut, resolved
// in the capture.

/// A pane's request. `random` replays random numbers; null: they are drawn.
PaneRequest paneRequestOf(const Session& session, std::size_t pane, std::shared_ptr<const CaptureReader> capture,
                          const Cut& cut, std::shared_ptr<const RandomSource> random = {});

/// The input of view data, without options, range and size of one view.
ViewDataRequest dataRequestOf(const Session& session, const std::shared_ptr<const CaptureReader>& capture,
                              const Cut& cut, const std::shared_ptr<const RandomSource>& random = {});
/// The same for one view: with its options, and its shown part in device pixels.
ViewDataRequest dataRequestFor(const View& view, const Session& session, ViewDataRequest request, std::int64_t width,
                               std::int64_t height);

/// A pane as views see it. The result may be null or older than the session; a result of another layer is left out. A
/// recorded list without the shown KV head has an error instead of its result. The identity of a list is known from its
/// result; until then the pane has the file's name.
PaneData paneDataOf(const Session& session, std::size_t pane, std::shared_ptr<const RunResult> result);

/// The session as views see it, without panes, view data and hover. Without a capture or a cut the input has none.
ViewInput viewInputOf(const Session& session, std::shared_ptr<const CaptureReader> capture,
                      const std::optional<Cut>& cut);

/// The heads of a layer for which a view has a picture each, by KV head: all query heads if it is about a query head,
/// else the first of each KV head. Empty: it is not about one head.
std::vector<QueryHeadIndex> headsOf(const View& view, const LayerInfo& layer);

} // namespace kvscope
