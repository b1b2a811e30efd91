#pragma once

#include "core/base/index.h"

#include <cstdint>
#include <limits>
#include <vector>

namespace kvscope {

/// Greedy k-center (farthest first; Gonzalez 1985; SubGen section 3.2) over the rows of one head: each centre is the
/// row farthest from the centres before it, Euclidean distance, ties to the lower row. Nested: the first k centres of a
/// longer run are the run of k. It ends early when every row coincides with a centre.
struct GreedyCenters {
    std::vector<TokenIndex> order;      ///< rows in the order in which they were picked
    std::vector<double> radius;         ///< after each pick: largest distance of a row to its nearest centre
    std::vector<double> closest;        ///< after each pick: lead of the next pick over the runner-up (distances)
    std::vector<double> distances;      ///< [n] squared distance to the nearest of the first `compared` centres
    std::vector<std::int32_t> centre;   ///< [n] position in `order` of that centre; ties to the earlier one
    std::vector<std::int32_t> compared; ///< [n] centres that the row was compared with; the others are farther
};

struct CentersRequest {
    std::int64_t count = 0;                ///< centres wanted, 1..n
    std::vector<TokenIndex> first;         ///< [H] first centre of each head
    bool compareAll = false;               ///< fills distances and centre up to the last centre for every row
    std::vector<GreedyCenters> known = {}; ///< [H] a shorter run on the same keys and first centres, or empty
};

/// One pass of SubGen's clustering (Algorithm 1) over the rows of one head, in order: a row joins the cluster of the
/// nearest representative if that is at distance <= radius (ties to the older cluster), else it opens a cluster.
struct StreamClusters {
    std::vector<TokenIndex> representatives;                 ///< rows, ascending
    std::vector<std::int32_t> cluster;                       ///< [n] cluster of each row
    std::vector<double> distances;                           ///< [n] distance to its representative
    double margin = std::numeric_limits<double>::infinity(); ///< smallest |distance - radius| of a decision
    bool full = false; ///< stopped because it needed more clusters than allowed; later rows are missing
};

} // namespace kvscope
