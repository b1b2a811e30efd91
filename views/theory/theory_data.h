#pragma once

#include "core/studies/theory_table.h"
#include "views/view_data.h"

#include <string>
#include <vector>

namespace kvscope {

/// The statements of the theorems about the active pane's policy, for all KV heads of the layer.
struct TheoryData : ViewData {
    std::vector<TheoryRow> rows; ///< by KV head
    TheoryAsked asked;
    std::string policyName;
};

} // namespace kvscope
