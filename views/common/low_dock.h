#pragma once

#include "views/view.h"

namespace kvscope {

/// Whether the canvas is too low for axis titles. Paper keeps titles longer, because it has no read-out.
inline bool isLowDock(const Viewport& viewport) {
    constexpr double kOnScreen = 170, kOnPaper = 140;
    return viewport.height < (viewport.forExport ? kOnPaper : kOnScreen);
}

} // namespace kvscope
