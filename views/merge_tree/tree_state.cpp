// MergeAndReduce is a binary counter: after m full batches the node r of level i exists once (r + 1) 2^(i-1) <= m, and
// it is live until its neighbour is there too and both go up together. At the top all stay.
#include "views/merge_tree/tree_state.h"

#include <algorithm>

namespace kvscope {

TreeState::TreeState(const BalanceTree& tree, TokenIndex cursor)
    : m_tree(tree), m_cursor(cursor), m_seen(std::ranges::lower_bound(tree.rows, cursor) - tree.rows.begin()),
      m_sets(tree.setsAt(cursor)) {
    m_inMemory.assign(tree.rows.empty() ? 0 : static_cast<std::size_t>(tree.rows.back()) + 1, 0);
    for (const auto& set : m_sets)
        for (const TokenIndex row : set) m_inMemory[row] = 1;
}

std::int64_t TreeState::nodeCount(std::int64_t level) const {
    if (level > 0) return std::ssize(m_tree.nodes[level - 1]);
    return (std::ssize(m_tree.rows) + m_tree.batch - 1) / m_tree.batch;
}

std::int64_t TreeState::firstBatch(std::int64_t level, std::int64_t place) const {
    return level == 0 ? place : place << (level - 1);
}

std::int64_t TreeState::beginOf(std::int64_t batch) const {
    return std::min(batch * m_tree.batch, std::ssize(m_tree.rows));
}

NodeState TreeState::stateOf(std::int64_t level, std::int64_t place) const {
    if (level == 0) {
        if (beginOf(place) >= m_seen) return NodeState::Future;
        const bool reduced = levels() > 0 && place < batches();
        return reduced ? NodeState::Merged : NodeState::Filling;
    }
    const auto made = batches() >> (level - 1);
    if (place >= made) return NodeState::Future;
    return level == levels() || place >= made - made % 2 ? NodeState::Live : NodeState::Merged;
}

std::int64_t TreeState::stored() const {
    std::int64_t sum = 0;
    for (const auto& set : m_sets) sum += std::ssize(set);
    return sum;
}

std::int64_t TreeState::weightedCount() const {
    std::int64_t sum = 0;
    for (std::size_t level = 0; level < m_sets.size(); ++level) sum += std::ssize(m_sets[level]) << level;
    return sum;
}

bool TreeState::inMemory(TokenIndex row) const {
    return 0 <= row && static_cast<std::size_t>(row) < m_inMemory.size() && m_inMemory[row] != 0;
}

TreeState::Path TreeState::pathOf(TokenIndex row) const {
    Path path;
    const auto at = std::ranges::lower_bound(m_tree.rows, row);
    if (at == m_tree.rows.end() || *at != row || row >= m_cursor) return path;
    path.batch = (at - m_tree.rows.begin()) / m_tree.batch;
    for (std::int64_t level = 1; level <= levels(); ++level) {
        const std::int64_t place = path.batch >> (level - 1);
        if (place >= nodeCount(level) || stateOf(level, place) == NodeState::Future) break;
        const auto& output = node(level, place).output;
        if (std::ranges::find(output, row) == output.end()) {
            path.droppedAt = level;
            break;
        }
        path.kept.push_back(place);
    }
    return path;
}

} // namespace kvscope
