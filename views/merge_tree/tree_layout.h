#pragma once

#include "views/merge_tree/tree_state.h"
#include "views/scene/scene.h"
#include "views/view.h"

#include <cstdint>
#include <vector>

namespace kvscope {

inline constexpr double kPartsPitch =
    41; ///< least pitch at which nodes have their discrepancy above and their imbalance below

/// Places of the tree's parts: levels from the top (C^T) down to the batches (C^0), stream positions to the right.
/// Independent of the cursor, so that nothing moves while the stream plays.
struct TreeLayout {
    Box plot;      ///< the data area; labels lie left of it
    Box histogram; ///< of value norms; empty: none
    double xLow = 0, xHigh = 1;
    std::vector<double> rows; ///< y of the middle of each level, 0 .. T
    double nodeHeight = 24, leafHeight = 16;
    double pitch = 60;                                ///< between two levels
    double numberSize = 12;                           ///< of the text in the nodes
    bool twoLineLabels = true, oneLineLabels = false; ///< else the name alone, or nothing
    bool axisTitle = true;                            ///< dropped in a low dock, together with the histogram

    /// `withParts`: where the rows are high enough for them.
    TreeLayout(const TreeState& state, const Viewport& viewport, double top, bool withHistogram, bool withParts = true);

    bool showsParts() const { return m_withParts && pitch >= kPartsPitch; }
    /// Whether the numbers of pairs fit into the nodes of a level, all of them.
    bool isNumbered(std::int64_t level) const { return m_numbered[level]; }
    bool hasNumbers() const;

    double xOf(double token) const { return plot.x + (token - xLow) / (xHigh - xLow) * plot.width; }
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
    double fullWidth(const TreeState& state, std::int64_t level) const;
    double numberWidth(std::size_t number) const;

    bool m_withParts;
    std::vector<bool> m_numbered; ///< by level
};

/// Pick ids of nodes, batches (level 0) and octaves.
constexpr std::int64_t kOctaveLevel = 100;
constexpr std::int64_t nodeId(std::int64_t level, std::int64_t place) { return (level << 32) | place; }
constexpr std::int64_t levelOf(std::int64_t id) { return id >> 32; }
constexpr std::int64_t placeOf(std::int64_t id) { return id & 0xFFFFFFFF; }

} // namespace kvscope
