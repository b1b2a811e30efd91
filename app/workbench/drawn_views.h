#pragma once

#include "views/view.h"

#include <map>
#include <string>
#include <utility>

namespace kvscope {

/// What a view's picture, finding, table, read-out, steps and caption are made from. All of them read this one input,
/// so that they agree with the picture that is drawn.
struct DrawnView {
    ViewInput input;
    ParameterValues options;
    bool isOutdated = false; ///< the picture is older than what the session asks for
};

const View& paneView(); ///< what panes show

/// Whether all panes fail with an error about what the capture's file holds, which is said once for the whole window.
bool isLayerBroken(const ViewInput& input);

/// The inputs of the latest pictures. While something is computed and there is nothing to draw yet, a view keeps its
/// last picture; the selection, the pointer and the step cursor are always the present ones.
class DrawnViews {
public:
    /// `pane`: the pane that a per-pane view draws; -1: all.
    DrawnView update(const View& view, int pane, ViewInput now, ParameterValues options);
    void forget(const View& view); ///< of all panes
    void clear();                  ///< the capture changed

private:
    std::map<std::pair<std::string, int>, DrawnView> m_latest; ///< by view id and pane; each had a picture
};

} // namespace kvscope
