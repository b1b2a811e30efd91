#pragma once

#include "core/studies/reproduction.h"

namespace kvscope {

/// The rows of some papers; allReproductions() joins them.
std::vector<Reproduction> subGenReproductions();
std::vector<Reproduction> compactorReproductions();

/// Fractions kept of a row whose source names none.
std::vector<std::string> reproductionBudgets();

} // namespace kvscope
