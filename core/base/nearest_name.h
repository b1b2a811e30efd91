#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kvscope {

/// The candidate with the smallest edit distance (insert, delete, replace, swap of neighbours; case is ignored), the
/// first one of equals. Empty when none is near: more than a third of the longer name would have to change.
std::string nearestName(std::string_view typed, const std::vector<std::string>& candidates);

/// "Did you mean 'anchor'?" or, when nothing is near, "Known: anchor, metric." The remedy of every unknown name.
std::string suggestName(std::string_view typed, const std::vector<std::string>& candidates);

} // namespace kvscope
