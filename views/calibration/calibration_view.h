#pragma once

#include "views/view.h"

namespace kvscope {

const View& calibrationView();

} // namespace kvscope
