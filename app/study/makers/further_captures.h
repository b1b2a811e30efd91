#pragma once

#include "app/study/makers/view_data_maker.h"

#include <memory>
#include <string>
#include <vector>

namespace kvscope {

/// The open capture and those that `files` names (views/common/file_option.h), in this order. Readers are kept with the
/// runner's cache, so that what was computed on them is found again. Throws Error for a file that is no capture, for
/// one without the request's layer or KV head, and for one that is named twice.
std::vector<std::shared_ptr<const CaptureReader>> capturesWith(const std::string& files, const LayerRunner& runner,
                                                               const ViewDataRequest& request,
                                                               const Checkpoint& checkpoint);

/// The pane as it runs on one of these captures: the cut of the same words there. Throws Error.
RunRequest onCapture(const PaneRequest& pane, const std::shared_ptr<const CaptureReader>& capture);

} // namespace kvscope
