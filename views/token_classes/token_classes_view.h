#pragma once

#include "views/view.h"

namespace kvscope {

/// What each pane keeps of every class of tokens.
const View& tokenClassesView();

} // namespace kvscope
