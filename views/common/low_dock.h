#pragma once

#include "views/view.h"

namespace kvscope {

/// Too low for the title of an axis: what it says gives way to the data. Paper keeps it longer, nobody can point at it
/// there.
inline bool isLowDock(const Viewport& viewport) {
    constexpr double kOnScreen = 170, kOnPaper = 140;
    return viewport.height < (viewport.forExport ? kOnPaper : kOnScreen);
}

} // namespace kvscope
