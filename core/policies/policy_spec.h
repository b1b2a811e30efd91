#pragma once

#include "core/parameters/parameters.h"
#include "core/policies/selection.h"

#include <optional>
#include <string>

namespace kvscope {

/// A policy as asked for: `ID[:VARIANT][,parameter=value]...[@BUDGET]`.
struct PolicySpec {
    std::string policy, variant;
    ParameterValues values; ///< of all parameters, with the variant's presets
    std::optional<Budget> budget;

    /// Throws Error naming the part that is wrong.
    static PolicySpec parse(const std::string& text);
    std::string text() const; ///< shortest form that parses back to the same
    friend bool operator==(const PolicySpec&, const PolicySpec&) = default;
};

/// A policy in one of its variants, otherwise at defaults; an empty variant is the first one. Unlike parsing
/// "ID:VARIANT" it also works for policies whose colon introduces a parameter. Throws Error with the nearest name.
PolicySpec specOfVariant(const std::string& policy, const std::string& variant);

} // namespace kvscope
