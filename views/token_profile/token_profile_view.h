#pragma once

#include "views/view.h"

namespace kvscope {

const View& tokenProfileView();

} // namespace kvscope
