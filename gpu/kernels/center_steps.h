#pragma once

#include "core/base/portable_math.h"

#include <cstdint>

// The farthest of some rows with the runner-up's distance, merged commutatively.
namespace kvscope::gpu {

struct Farthest {
    double distance = -1;         ///< squared; -1: no row
    double runnerUp = -1;         ///< squared distance of the second
    std::int64_t row = INT64_MAX; ///< ties to the lower row
};

KVSCOPE_PORTABLE bool isFarther(const Farthest& a, const Farthest& b) {
    return a.distance != b.distance ? a.distance > b.distance : a.row < b.row;
}

/// Commutative and associative on rows that differ.
KVSCOPE_PORTABLE Farthest farthestOf(const Farthest& a, const Farthest& b) {
    const bool first = isFarther(a, b);
    const double lesser = first ? b.distance : a.distance, runnerUp = first ? a.runnerUp : b.runnerUp;
    return {first ? a.distance : b.distance, lesser > runnerUp ? lesser : runnerUp, first ? a.row : b.row};
}

} // namespace kvscope::gpu
