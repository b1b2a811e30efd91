#pragma once

#include "views/view.h"

namespace kvscope {

/// How much the kept lists of the panes have in common: Jaccard matrix and how many panes keep each token.
const View& overlapView();

} // namespace kvscope
