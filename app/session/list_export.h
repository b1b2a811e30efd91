#pragma once

#include "core/run/selection_file.h"

#include <string>

namespace kvscope {

/// The lists of all KV heads of a result's layer, with everything that determined them.
RecordedSelection recordOf(const RunResult& result, const std::string& command);

} // namespace kvscope
