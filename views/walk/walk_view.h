#pragma once

#include "views/view.h"

namespace kvscope {

const View& walkView();

} // namespace kvscope
