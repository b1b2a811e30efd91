#pragma once

#include "tests/support/source_dir.h"

#include <string>

namespace kvscope::testing {

inline const std::string kSample = sourceDir() + "/sample_data/needle-1k.h5";

} // namespace kvscope::testing
