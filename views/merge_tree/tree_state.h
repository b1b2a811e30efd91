#pragma once

#include "core/policies/balance/balance_tree.h"

#include <cstdint>
#include <vector>

namespace kvscope {

enum class NodeState { Future, Filling, Live, Merged };

/// A tree of streaming BalanceKV after the rows before a cursor: stored, merged and future nodes. Level 0 holds the
/// batches, level i >= 1 the nodes that made C^i's parts. Rows and stream tokens coincide here.
class TreeState {
public:
    /// The tree must outlive the state.
    TreeState(const BalanceTree& tree, TokenIndex cursor);

    const BalanceTree& tree() const { return m_tree; }
    TokenIndex cursor() const { return m_cursor; }
    std::int64_t seen() const { return m_seen; }                   ///< rows of the tree before the cursor
    std::int64_t batches() const { return m_seen / m_tree.batch; } ///< that are full
    std::int64_t levels() const { return static_cast<std::int64_t>(m_tree.nodes.size()); }
    std::int64_t
    nodeCount(std::int64_t level) const; ///< those to come included; level 0: the last one may stay partial
    const BalanceNode& node(std::int64_t level, std::int64_t place) const { ///< level from 1
        return m_tree.nodes[level - 1][place];
    }
    NodeState stateOf(std::int64_t level, std::int64_t place) const;
    /// Batches [begin, end) below a node.
    std::int64_t firstBatch(std::int64_t level, std::int64_t place) const;
    std::int64_t lastBatch(std::int64_t level, std::int64_t place) const { return firstBatch(level, place + 1); }
    /// Rows of a batch: [begin, end) in tree().rows.
    std::int64_t beginOf(std::int64_t batch) const;

    const std::vector<std::vector<TokenIndex>>& sets() const { return m_sets; } ///< C^0 .. C^T
    std::int64_t stored() const;                                                ///< sum of |C^i|
    std::int64_t weightedCount() const;                                         ///< sum of 2^i |C^i|
    bool inMemory(TokenIndex row) const;
    /// The sets that a row went through so far: node places of levels 1, 2, ... that kept it; empty: it has gone no
    /// further than C^0. `dropped`: the node at which it left, as (level, place).
    struct Path {
        std::int64_t batch = -1; ///< -1: the tree does not hold it, or not yet
        std::vector<std::int64_t> kept;
        std::int64_t droppedAt = 0; ///< level of the node that dropped it; 0: still in memory
    };
    Path pathOf(TokenIndex row) const;

private:
    const BalanceTree& m_tree;
    TokenIndex m_cursor;
    std::int64_t m_seen;
    std::vector<std::vector<TokenIndex>> m_sets;
    std::vector<char> m_inMemory; ///< per row of the stream
};

} // namespace kvscope
