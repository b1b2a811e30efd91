#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace kvscope {

/// BalanceKV's set of a level: "C²".
std::string setName(std::int64_t level);

/// The values of one bucket: "2^−1 < ‖v‖ ≤ 2^0".
std::string octaveText(int bucket);

/// Message that an example is shown and how to see the user's own data: the longest wording that fits. `lacks`: "No
/// pane runs BalanceKV"; `source`: what the example is.
std::string standInWords(const std::string& lacks, const std::string& source,
                         const std::function<bool(const std::string&)>& fits);

} // namespace kvscope
