#pragma once

#include "views/view.h"

namespace kvscope {

/// All variants of the active pane's policy at one budget: which tokens change, and why.
const View& variantDiffView();

} // namespace kvscope
