#pragma once

#include "core/run/run.h"
#include "views/view.h"

#include <memory>
#include <string>

namespace kvscope {

/// What a projection is computed from.
struct ProjectionRequest {
    std::shared_ptr<const CaptureReader> capture;
    LayerIndex layer;
    KvHeadIndex kvHead;
    QueryHeadIndex queryHead;
    std::string source = "keys"; ///< "keys" or "keys_pre_rope"
    std::string key() const;     ///< equal keys, equal projections
};

constexpr int kProjectionComponents = 5;

/// Principal axes of all keys of one head, the keys on them, and the captured queries of one query head on the same
/// axes. Runs on a worker; windows and headless figures share it. Throws Error or Cancelled.
std::shared_ptr<const ProjectionData> computeProjection(const LayerRunner& runner, const ProjectionRequest& request,
                                                        const Checkpoint& checkpoint);

} // namespace kvscope
