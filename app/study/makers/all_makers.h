#pragma once

#include "app/study/makers/view_data_maker.h"

#include <vector>

namespace kvscope {

/// All kinds, one line each.
const std::vector<ViewDataMaker>& viewDataMakers();
/// The maker of a view's data; null for a view that shows results only.
const ViewDataMaker* makerFor(const View& view);

} // namespace kvscope
