#pragma once

#include "views/view.h"

namespace kvscope {

/// Compactor's two standardised scores against each other, with the line that its choice draws (Compactor 3.3).
const View& scorePlaneView();

} // namespace kvscope
