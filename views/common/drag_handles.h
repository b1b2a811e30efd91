#pragma once

#include "views/view.h"

#include <optional>

namespace kvscope {

/// What a view can do beside being drawn, when its marks of kind Handle can be dragged to change the active pane.
class DragHandles {
public:
    virtual ~DragHandles() = default;
    /// What it means to drag the handle of a scene that this view built to a point; nothing where it means nothing.
    virtual std::optional<SettingChange> draggedTo(const ViewInput& input, const ParameterValues& options,
                                                   const Scene& scene, PickId handle, Point at) const = 0;
};

} // namespace kvscope
