#pragma once

#include "core/engine/engine.h"
#include "views/view_data.h"

#include <string>

namespace kvscope {

/// Projected tensors of one head, shared by all panes.
struct ProjectionData : ViewData {
    std::string source;         ///< "keys", "keys_pre_rope"
    PrincipalAxes axes;
    HostTensor keys;            ///< [n, components]
    HostTensor queries;         ///< [w, components] or empty: query head's queries on the keys' axes
    TokenIndex firstQuery = 0;
    HostTensor queryMean;       ///< [components] or empty
};

} // namespace kvscope
