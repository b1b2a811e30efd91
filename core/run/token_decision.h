#pragma once

#include "core/run/run.h"

#include <string>

namespace kvscope {

/// Why tokenDecisionOf names no smallest budget for the scored tokens of a result, as words that follow "unknown: ".
/// Empty where it does name one, and for policies without a budget.
std::string whyNoFlipBudget(const RunResult& result);

} // namespace kvscope
