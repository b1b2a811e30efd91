#pragma once

#include "core/base/memo.h"
#include "core/engine/requests.h"
#include "core/engine/tsne.h"
#include "views/view_data.h"

#include <optional>
#include <string>
#include <vector>

namespace kvscope {

/// How the points of an embedding came about.
struct TsneRun {
    TsneRequest request;
    int iteration = 0;         ///< less than requested: still running
    double divergence = 0;     ///< nats
    double neighboursKept = 0; ///< share of the nearest neighbours; NaN while running
    TsneRepulsion repulsion = TsneRepulsion::Exact;
};

/// Projected tensors of one head, shared by all panes.
struct ProjectionData : ViewData {
    std::string source;          ///< "keys", "keys_pre_rope", "values", "queries"
    std::optional<TsneRun> tsne; ///< set: `keys` is an embedding [n, 2], on which nothing else can be projected
    PrincipalAxes axes;          ///< empty for an embedding
    HostTensor keys;             ///< [n, components] the rows that the source names
    std::vector<float> norms;    ///< [n] of these rows
    std::vector<TokenIndex>
        centres; ///< greedy k-centers of these rows in the head (SubGen section 3.2), as picked; empty: not asked for
    std::vector<std::int32_t> cluster; ///< [n] position in `centres` of the nearest one; empty if `centres` is
    double radius = 0;                 ///< largest distance of a row to its nearest centre
    HostTensor queries;                ///< [w, components] or empty: query head's queries on the keys' axes
    HostTensor queryMean;              ///< [components] or empty
    Memo memo; ///< caches what does not depend on the kept tokens, which every step of a drag needs again
};

} // namespace kvscope
