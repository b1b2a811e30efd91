#pragma once

#include "views/view.h"

namespace kvscope {

const View& curvesView();

} // namespace kvscope
