#pragma once

#include "core/policies/policy.h"

namespace kvscope {

/// Card, parameters and variants of Compactor (policies.md 4.2 and 4.3).
PolicyCard compactorCard();

} // namespace kvscope
