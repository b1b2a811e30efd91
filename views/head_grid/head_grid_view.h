#pragma once

#include "views/view.h"

namespace kvscope {

const View& headGridView();

} // namespace kvscope
