#pragma once

#include "tests/support/naive/naive_engine.h"

#include <vector>

/// Clustering as its definition says: every distance from scratch, in double, one number at a time.
namespace kvscope::naive {

struct Centers {
    std::vector<int> order;
    std::vector<double> radius;  ///< after each pick
    std::vector<double> closest; ///< lead of the farthest row over the next one, after each pick
    std::vector<int> cell;       ///< nearest centre of each row, position in `order`
};
Centers greedyCenters(const Block& keys, std::int64_t head, std::int64_t count, std::int64_t first);

struct Clusters {
    std::vector<int> representatives, cluster;
    std::vector<double> distances;
    double margin = 1e300;
};
Clusters streamClusters(const Block& keys, std::int64_t head, double radius);

} // namespace kvscope::naive
