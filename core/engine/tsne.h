#pragma once

#include "core/base/checkpoint.h"
#include "core/base/host_tensor.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace kvscope {

// t-distributed stochastic neighbour embedding of the rows of one head (van der Maaten and Hinton, JMLR 9, 2008) into
// two dimensions. Affinities come from the 3 x perplexity nearest rows, at least 10 (van der Maaten, JMLR 15, 2014,
// section 4.1). Works on host numbers without an engine; results do not depend on thread count or instruction set.

inline constexpr std::int64_t kMostTsneRows = 65536;
/// Up to this many rows the repulsion is exact, beyond that it is interpolated on a grid.
inline constexpr std::int64_t kMostExactTsneRows = 8192;
/// Nearest rows for the quality measure Embedding::neighboursKept.
inline constexpr int kEvaluatedNeighbours = 10;

/// How the repulsion between points is summed. Exact: over all pairs, n^2 work in each step. Grid: its potential is
/// convolved on a grid and interpolated, 1 % off as a whole, up to 3 % where points are sparse (tests/engine).
enum class TsneRepulsion { Exact, Grid };
inline TsneRepulsion repulsionFor(std::int64_t rows) {
    return rows > kMostExactTsneRows ? TsneRepulsion::Grid : TsneRepulsion::Exact;
}

/// Threads and instruction set; they do not change the result.
struct TsneWorkers {
    int threads = 0;            ///< 0: all cores
    std::string instructionSet; ///< as in makeCpuEngine
};

/// Neighbours of n rows: a sparse symmetric matrix p_ij = (p_j|i + p_i|j) / 2n with sum 1, where p_j|i is proportional
/// to exp(-beta_i |x_i - x_j|^2) over the nearest rows of i, and beta_i is set for the requested perplexity.
struct TsneAffinities {
    std::vector<std::int64_t> begin;   ///< [n + 1] first entry of each row
    std::vector<std::int32_t> column;  ///< ascending within a row, never the row itself
    std::vector<double> affinity;      ///< p_ij > 0
    std::vector<std::int32_t> nearest; ///< [n, min(kEvaluatedNeighbours, n - 1)] by (distance, index)

    std::int64_t rows() const { return static_cast<std::int64_t>(begin.size()) - 1; }
};

/// Euclidean distances in double, ties to the lower row. rows [n, d] with 3 x perplexity < n <= kMostTsneRows. Throws
/// Error where n does not fit or a row is not finite. n^2 d work, in float where that settles a comparison.
TsneAffinities tsneAffinities(const HostTensor& rows, double perplexity, const TsneWorkers& workers,
                              const Checkpoint& checkpoint);

/// The cost KL(P || Q) at points y [n, 2], and its gradient 4 sum_j (a p_ij - q_ij) w_ij (y_i - y_j), where
/// w_ij = 1 / (1 + |y_i - y_j|^2), q_ij = w_ij / sum w and a is the exaggeration.
struct TsneGradient {
    std::vector<double> gradient; ///< [n, 2]
    double divergence = 0;        ///< in nats, without the exaggeration
};
TsneGradient tsneGradient(const TsneAffinities& affinities, const std::vector<double>& points, double exaggeration,
                          const TsneWorkers& workers, TsneRepulsion repulsion = TsneRepulsion::Exact);

struct TsneRequest {
    double perplexity = 30;
    int iterations = 750;   ///< the first third of them, at most 250, with exaggerated affinities
    std::uint64_t seed = 0; ///< of the random start, a Gaussian of width 1e-4
    int snapshotEvery = 0;  ///< iterations; 0: none
};

struct Embedding {
    HostTensor points;         ///< [n, 2], centred; the axes have no unit and explain no variance
    int iteration = 0;         ///< gradient steps taken
    double divergence = 0;     ///< nats
    double neighboursKept = 0; ///< mean fraction of a row's nearest rows that stay nearest; NaN in a snapshot
    TsneRepulsion repulsion = TsneRepulsion::Exact;
};

/// Gradient descent with momentum and gains, with the repulsion for the number of rows. `snapshot` receives
/// intermediate embeddings.
Embedding tsne(const TsneAffinities& affinities, const TsneRequest& request, const TsneWorkers& workers,
               const Checkpoint& checkpoint, const std::function<void(Embedding)>& snapshot = {});

} // namespace kvscope
