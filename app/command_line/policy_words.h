#pragma once

#include <string>
#include <vector>

namespace kvscope {

/// Expands `--policy A B` to `--policy A --policy B`. A word after a policy counts as one when it begins with a
/// policy's id and is no file, so captures may stand anywhere. For `plot`, a bare id before the view is taken as the
/// view, because some views share a policy's id.
std::vector<std::string> withEachPolicyNamed(const std::vector<std::string>& words);

} // namespace kvscope
