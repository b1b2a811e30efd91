#pragma once

#include "views/view.h"

namespace kvscope {

/// Leverage of one head's keys: how concentrated it is, and what a sketch changes (Compactor 3.1, Theorem 2).
const View& leverageView();

} // namespace kvscope
