#pragma once

#include "core/policies/policy.h"

namespace kvscope {

/// Card, parameters and variants of Compactor.
PolicyCard compactorCard();

} // namespace kvscope
