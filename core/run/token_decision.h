#pragma once

#include "core/run/run.h"

#include <string>

namespace kvscope {

/// Why tokenDecisionOf gives no smallest budget, as words after "unknown: ". Empty where it gives one, and for policies
/// without a budget.
std::string whyNoFlipBudget(const RunResult& result);

} // namespace kvscope
