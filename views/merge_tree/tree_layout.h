#pragma once

#include "core/policies/balance/balance_tree.h"
#include "views/scene/scene.h"
#include "views/view.h"

#include <cstdint>
#include <vector>

namespace kvscope {

enum class NodeState { Future, Filling, Live, Merged };

/// A tree of streaming BalanceKV after the rows before a cursor: stored, merged and future nodes. Level 0 holds the
/// batches, level i >= 1 the nodes that made C^i's parts. A row is a token of the stream.
class TreeState {
public:
    /// The tree must outlive the state. `erased`: the values of its octave are dropped, and nothing of it is in memory.
    TreeState(const BalanceTree& tree, TokenIndex cursor, bool erased = false);

    const BalanceTree& tree() const { return m_tree; }
    TokenIndex cursor() const { return m_cursor; }
    bool isErased() const { return m_erased; }
    std::int64_t seen() const { return m_seen; }                   ///< rows of the tree before the cursor
    std::int64_t batches() const { return m_seen / m_tree.batch; } ///< that are full
    std::int64_t levels() const { return static_cast<std::int64_t>(m_tree.nodes.size()); }
    std::int64_t
    nodeCount(std::int64_t level) const; ///< those to come included; level 0: the last one may stay partial
    const BalanceNode& node(std::int64_t level, std::int64_t place) const { ///< level from 1
        return m_tree.nodes[level - 1][place];
    }
    NodeState stateOf(std::int64_t level, std::int64_t place) const;
    /// The batches below a node: [firstBatch, lastBatch).
    std::int64_t firstBatch(std::int64_t level, std::int64_t place) const;
    std::int64_t lastBatch(std::int64_t level, std::int64_t place) const { return firstBatch(level, place + 1); }
    /// Index in tree().rows at which a batch begins.
    std::int64_t beginOf(std::int64_t batch) const;

    const std::vector<std::vector<TokenIndex>>& sets() const { return m_sets; } ///< C^0 .. C^T
    std::int64_t stored() const;                                                ///< sum of |C^i|
    std::int64_t weightedCount() const;                                         ///< sum of 2^i |C^i|
    bool inMemory(TokenIndex row) const;
    /// The sets that a row went through so far. `kept`: places of the nodes of levels 1, 2, ... that kept it; empty: it
    /// has gone no further than C^0.
    struct Path {
        std::int64_t batch = -1; ///< -1: the tree does not hold it, or not yet
        std::vector<std::int64_t> kept;
        std::int64_t droppedAt = 0; ///< level of the node that dropped it; 0: still in memory
    };
    Path pathOf(TokenIndex row) const;

private:
    const BalanceTree& m_tree;
    TokenIndex m_cursor;
    bool m_erased;
    std::int64_t m_seen;
    std::vector<std::vector<TokenIndex>> m_sets;
    std::vector<char> m_inMemory; ///< per row of the stream
};

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

    /// `withParts`: nodes show their parts where the rows are high enough for them.
    TreeLayout(const TreeState& state, const Viewport& viewport, double top, bool withHistogram, bool withParts = true);

    bool showsParts() const { return m_withParts && pitch >= kPartsPitch; }
    /// Whether the numbers of pairs fit into all nodes of a level.
    bool isNumbered(std::int64_t level) const { return m_numbered[level]; }
    bool hasNumbers() const;

    double xOf(double token) const { return plot.x + (token - xLow) / (xHigh - xLow) * plot.width; }
    /// Stream position at which a batch begins.
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
