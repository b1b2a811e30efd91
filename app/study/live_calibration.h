#pragma once

#include "app/live/live_capture.h"
#include "app/study/pane_request.h"
#include "core/calibration/calibration.h"

#include <memory>

namespace kvscope {

/// Whether the model of a live context can say what policies cost at a cut: an answer is expected, and the worker read
/// the context with that cut.
bool isCalibratable(const std::shared_ptr<const live::LiveCapture>& capture, const Cut& cut);

/// The triples of a pane's policy, from the model of the live context: the loss of the expected answer at the
/// retentions of a proxy. The worker is asked once; then the runner's cache keeps them, beside the capture. Other
/// requests of the context neither end this one nor are ended by it. Throws Error without an expected answer, for
/// another cut, and where no retention has a loss.
std::shared_ptr<const CalibrationData> liveTriples(const LayerRunner& runner,
                                                   const std::shared_ptr<const live::LiveCapture>& capture,
                                                   PaneRequest pane, const Checkpoint& checkpoint);

} // namespace kvscope
