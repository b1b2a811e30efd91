#pragma once

#include <cstdint>
#include <string>

namespace kvscope {

/// BalanceKV's set of a level: "C²".
std::string setName(std::int64_t level);

/// The values of one bucket: "2^−1 < ‖v‖ ≤ 2^0".
std::string octaveText(int bucket);

/// "2^−3".
std::string powerOfTwo(int exponent);

} // namespace kvscope
