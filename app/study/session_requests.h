#pragma once

#include "app/study/makers/view_data_maker.h"
#include "app/study/session.h"

#include <optional>

namespace kvscope {

// A session on its open capture: what its panes and views ask for, and what views see of it. Window, command line,
// report and lessons all ask through these functions, so the same session is the same picture everywhere. `cut` is the
// session's own cut, resolved in the capture.

/// What a pane asks for. `random` replays random numbers; null: they are drawn.
PaneRequest paneRequestOf(const Session& session, std::size_t pane, std::shared_ptr<const CaptureReader> capture,
                          const Cut& cut, std::shared_ptr<const RandomSource> random = {});

/// What the data of views are computed from, without the options, the range and the size of one view.
ViewDataRequest dataRequestOf(const Session& session, const std::shared_ptr<const CaptureReader>& capture,
                              const Cut& cut, const std::shared_ptr<const RandomSource>& random = {});
/// The same for one view: its options, and the part of it that is shown in so many device pixels.
ViewDataRequest dataRequestFor(const View& view, const Session& session, ViewDataRequest request, std::int64_t width,
                               std::int64_t height);

/// A pane as views see it. The result may be null or older than the session: a result of another layer is left out,
/// because it says nothing about the heads that are shown. Of a recorded list only the result knows the identity; until
/// it is there the pane bears the name of the file.
PaneData paneDataOf(const Session& session, std::size_t pane, std::shared_ptr<const RunResult> result);

/// The session as views see it, without panes, without the data of a view and with nothing pointed at. Without a
/// capture or a cut the input has none.
ViewInput viewInputOf(const Session& session, std::shared_ptr<const CaptureReader> capture,
                      const std::optional<Cut>& cut);

} // namespace kvscope
