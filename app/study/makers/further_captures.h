#pragma once

#include "app/study/makers/view_data_maker.h"

#include <memory>
#include <string>
#include <vector>

namespace kvscope {

/// The open capture followed by those that `files` names (views/common/view_options.h). Readers are kept in the
/// runner's cache, so that cached results stay valid. Throws Error for a file that is no capture, for one without the
/// request's layer or KV head, and for one that is named twice.
std::vector<std::shared_ptr<const CaptureReader>> capturesWith(const std::string& files, const LayerRunner& runner,
                                                               const ViewDataRequest& request,
                                                               const Checkpoint& checkpoint);

/// The pane's request on another capture, with the cut resolved there from the same text. Throws Error.
RunRequest onCapture(const PaneRequest& pane, const std::shared_ptr<const CaptureReader>& capture);

} // namespace kvscope
