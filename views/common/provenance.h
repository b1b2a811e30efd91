#pragma once

#include "views/view.h"

#include <string>
#include <vector>

namespace kvscope {

/// The words of `provenance` (views/common/view_facts.h) for a picture that names its own place, such as "layer 3, all
/// its heads"; an empty place: none.
std::string provenanceOf(const std::string& place, const ViewInput& input, const std::vector<const PaneData*>& panes);

} // namespace kvscope
