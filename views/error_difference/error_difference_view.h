#pragma once

#include "views/view.h"

namespace kvscope {

/// Which of two panes serves each evaluation query better, and by how much.
const View& errorDifferenceView();

} // namespace kvscope
