#pragma once

#include "views/common/view_options.h"

#include <string>
#include <utility>

namespace kvscope {

/// Units of options that name a parameter of a policy, so that a host can offer those of the active pane's policy.
inline constexpr const char *kParameterUnit = "parameter", *kNumberUnit = "number"; ///< any, or numbers only

/// The row of such an option: "id", "id=v1,v2" or empty. It changes what is computed.
inline ParameterSpec parameterOption(std::string id, std::string label, std::string help, std::string source,
                                     const char* unit) {
    ParameterSpec spec =
        textOption(std::move(id), std::move(label), std::move(help), std::move(source), {}, nullptr, Stage::Features);
    spec.unit = unit;
    return spec;
}

} // namespace kvscope
