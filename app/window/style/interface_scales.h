#pragma once

#include <array>

namespace kvscope {

inline constexpr std::array kInterfaceScales = {1.0, 1.25, 1.5, 2.0}; ///< the steps of Ctrl+plus and minus

} // namespace kvscope
