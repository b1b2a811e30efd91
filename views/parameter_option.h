#pragma once

#include "core/parameters/parameters.h"

#include <string>
#include <utility>

namespace kvscope {

/// Units of options that name a parameter of a policy, so that a host can offer those of the active pane's policy.
inline constexpr const char *kParameterUnit = "parameter", *kNumberUnit = "number"; ///< any, or numbers only

/// The row of such an option: "id", "id=v1,v2" or empty. It changes what is computed.
inline ParameterSpec parameterOption(std::string id, std::string label, std::string help, std::string source, const char* unit) {
    ParameterSpec spec;
    spec.id = std::move(id);
    spec.label = std::move(label);
    spec.help = std::move(help);
    spec.source = std::move(source);
    spec.unit = unit;
    spec.kind = ParameterKind::Text;
    spec.stage = Stage::Features;
    return spec;
}

} // namespace kvscope
