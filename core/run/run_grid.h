#pragma once

#include "core/base/error.h"
#include "core/run/run.h"

#include <cstddef>
#include <optional>
#include <span>

namespace kvscope {

/// One run of a grid: a capture, a layer, a policy with its parameters, a budget, a cut and a seed.
struct GridPoint {
    RunRequest run;
    std::optional<Error> refused = {}; ///< why there is no such run: a parameter or a file that does not fit
    int group = -1; ///< after a failure the rest of the point's group is left out; -1: the point stands alone
};

/// The point that `make` returns a RunRequest for, or the Error that `make` throws in its place.
template <class Make> GridPoint gridPoint(const Make& make, int group = -1) {
    try {
        return {make(), {}, group};
    } catch (const Error& error) {
        return {{}, error, group};
    }
}

/// Receives the results. Both functions are called in the order of the points, on the calling thread.
struct GridSink {
    /// `checkpoint` is the last tenth of the point, for work done here. An Error thrown here is the point's error.
    std::function<void(std::size_t point, const std::shared_ptr<const RunResult>& result, const Checkpoint& checkpoint)>
        finished;
    /// Null: the first Error ends the grid, and runGrid throws it.
    std::function<void(std::size_t point, const Error& error)> failed = {};
};

/// What the runner's cache does with a layer that the grid has left. A grid that forgets needs memory for two layers
/// only, however many it visits.
enum class LayersLeft { Keep, Forget };

/// Runs the points in their order and delivers each one when it is finished: a result, or an error. The next layer is
/// read while one is computed, so points of one layer should be neighbours. Progress counts points; a stop is noticed
/// at every point, also where the results come from the cache. Throws Cancelled.
void runGrid(const LayerRunner& runner, std::span<const GridPoint> points, const Checkpoint& checkpoint,
             const GridSink& sink, LayersLeft left = LayersLeft::Keep);

} // namespace kvscope
