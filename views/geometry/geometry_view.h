#pragma once

#include "views/view.h"

namespace kvscope {

/// Where keys and queries point and how long they are: KeyDiff Figs. 12 to 16, BalanceKV Table 3, KeyDiff's two bounds.
const View& geometryView();

} // namespace kvscope
