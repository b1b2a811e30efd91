#pragma once

#include <cstring>
#include <vector>

namespace kvscope {

/// Also of NaN and of zeros with a sign.
template <class Number> bool sameBits(const std::vector<Number>& a, const std::vector<Number>& b) {
    return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(Number)) == 0);
}

} // namespace kvscope
