#pragma once

#include "views/merge_tree/tree_state.h"
#include "views/scene/scene.h"
#include "views/view.h"

#include <cstdint>
#include <vector>

namespace kvscope {

inline constexpr double kPercentPitch = 44; ///< least pitch at which discrepancies are written over the nodes

/// Where the parts of the tree lie: levels from the top (C^T) down to the batches (C^0), stream positions to the right.
/// Nothing in it depends on the cursor, so that nothing moves while the stream is played.
struct TreeLayout {
    Box plot;                 ///< the data area; labels lie left of it
    Box histogram;            ///< of value norms; empty: none
    double xLow = 0, xHigh = 1;
    std::vector<double> rows; ///< y of the middle of each level, 0 .. T
    double nodeHeight = 24, leafHeight = 16;
    double pitch = 60;        ///< between two levels
    bool twoLineLabels = true;
    bool axisTitle = true;    ///< gives way in a low dock, and with it the histogram

    TreeLayout(const TreeState& state, const Viewport& viewport, double top, bool withHistogram);

    double xOf(double token) const { return plot.x + (token - xLow) / (xHigh - xLow) * plot.width; }
    double tokenAt(double x) const { return xLow + (x - plot.x) / plot.width * (xHigh - xLow); }
    /// Stream positions [begin, end) of batches [first, last).
    double beginOf(const TreeState& state, std::int64_t batch) const;
    /// Centre of a node or batch.
    Point centreOf(const TreeState& state, std::int64_t level, std::int64_t place) const;
    /// Width that a node of this level may take, on average.
    double pitchOf(const TreeState& state, std::int64_t level) const;
    /// The larger a node's output, the wider its box; half a batch fills the width that the level leaves.
    Box boxOf(const TreeState& state, std::int64_t level, std::int64_t place) const;

private:
    void placeRows(std::size_t levels);
};

/// Pick ids of nodes, batches (level 0) and octaves.
constexpr std::int64_t kOctaveLevel = 100;
constexpr std::int64_t nodeId(std::int64_t level, std::int64_t place) {
    return (level << 32) | place;
}
constexpr std::int64_t levelOf(std::int64_t id) {
    return id >> 32;
}
constexpr std::int64_t placeOf(std::int64_t id) {
    return id & 0xFFFFFFFF;
}

} // namespace kvscope
