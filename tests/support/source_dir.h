#pragma once

#include <string>

namespace kvscope::testing {

/// The folder of the sources that the tests were built from. In no test's command line, so that another checkout finds
/// their objects in the compiler's cache.
std::string sourceDir();

} // namespace kvscope::testing
