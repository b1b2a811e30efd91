#include "tests/support/source_dir.h"

namespace kvscope::testing {

std::string sourceDir() { return KVSCOPE_SOURCE_DIR; }

} // namespace kvscope::testing
