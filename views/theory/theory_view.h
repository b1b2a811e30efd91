#pragma once

#include "views/view.h"

namespace kvscope {

/// What the theorems demand of a head at its norms, against the parameters, and measured errors over their bounds.
const View& theoryView();

} // namespace kvscope
