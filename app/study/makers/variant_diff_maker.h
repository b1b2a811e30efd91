#pragma once

#include "app/study/makers/view_data_maker.h"

#include <string>
#include <string_view>
#include <vector>

namespace kvscope {

/// Runs all variants of the active pane's policy at the pane's budget, then every differing parameter by itself
/// (VariantDiffData); a part is delivered after every run.
ViewDataMaker::Value makeVariantDiffData(const LayerRunner& runner, const ViewDataRequest& request,
                                         const Checkpoint& checkpoint, const ViewDataMaker::Partial& partial);

/// IDs of disagreements and traps that a help text names in parentheses: "can disagree (K1)", "(B17, B19)".
std::vector<std::string> trapsIn(std::string_view text);

} // namespace kvscope
