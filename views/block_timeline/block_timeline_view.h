#pragma once

#include "views/view.h"

namespace kvscope {

const View& blockTimelineView();

} // namespace kvscope
