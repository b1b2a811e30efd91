#pragma once

#include "core/engine/engine.h"
#include "views/view_data.h"

#include <string>
#include <vector>

namespace kvscope {

/// Projected tensors of one head, shared by all panes.
struct ProjectionData : ViewData {
    std::string source;         ///< "keys", "keys_pre_rope", "values", "queries"
    PrincipalAxes axes;
    HostTensor keys;            ///< [n, components] the rows that the source names
    std::vector<float> norms;   ///< [n] of these rows
    HostTensor queries;         ///< [w, components] or empty: query head's queries on the keys' axes
    TokenIndex firstQuery = 0;
    HostTensor queryMean;       ///< [components] or empty
};

} // namespace kvscope
