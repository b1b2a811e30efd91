#pragma once

#include <string>

namespace kvscope::testing {

inline const std::string kSample = std::string(KVSCOPE_SOURCE_DIR) + "/sample_data/needle-1k.h5";

} // namespace kvscope::testing
