#pragma once

#include "core/base/index.h"

#include <nlohmann/json.hpp>

#include <vector>

namespace kvscope {

/// Ascending tokens in a session file: [10, 11, 12, 20] as runs [[10, 13], [20, 21]].
nlohmann::ordered_json toRuns(const std::vector<TokenIndex>& tokens);
/// Throws Error for runs that are empty, not ascending or not of whole numbers, nlohmann's exception for anything else.
std::vector<TokenIndex> fromRuns(const nlohmann::ordered_json& runs);

} // namespace kvscope
