#pragma once

#include <cstring>

namespace kvscope {

/// Of vectors or spans of numbers; also of NaN and of zeros with a sign.
template <class Numbers> bool sameBits(const Numbers& a, const Numbers& b) {
    return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(*a.data())) == 0);
}

} // namespace kvscope
