#pragma once

#include "views/view.h"

namespace kvscope {

const View& mergeTreeView();

} // namespace kvscope
