#pragma once

#include "core/policies/policy_spec.h"

namespace kvscope {

/// A policy in one of its variants with nothing else changed; an empty variant is the first one. Unlike the text
/// "ID:VARIANT" it fits policies whose colon introduces a parameter. Throws Error with the nearest name.
PolicySpec specOfVariant(const std::string& policy, const std::string& variant);

} // namespace kvscope
