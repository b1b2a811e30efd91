#pragma once

#include "views/view.h"

namespace kvscope {

/// Keys of one head on two of their principal axes, kept against evicted (KeyDiff Figs. 4, 5, 8-11).
const View& keyProjectionView();

} // namespace kvscope
