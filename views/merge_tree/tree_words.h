#pragma once

#include "views/merge_tree/merge_tree_data.h"
#include "views/merge_tree/tree_layout.h"
#include "views/view.h"

#include <string>

namespace kvscope {

/// Whether the tree's octave lies below the erase line at the cursor: its values are dropped then.
bool isErased(const MergeTreeData& data, const BalanceTree& tree, TokenIndex cursor);

/// "the keys of the denominator", "values with 2^0 < ‖v‖ ≤ 2^1".
std::string treeName(const BalanceTree& tree);

/// Describes the last full batch, in at most two lines.
std::string treeCaption(const MergeTreeData& data, const TreeState& state);

/// Number of stored tokens, their weight, and the largest discrepancy among the live sets.
std::string treeFinding(const MergeTreeData& data, const TreeState& state);

/// A row of the table behind the picture: level, node, first and last batch, input, kept, weight, sum of signs,
/// discrepancy, largest |1 - 2p|, state, members.
std::vector<std::string> nodeCells(const MergeTreeData& data, const TreeState& state, std::int64_t level,
                                   std::int64_t place);

/// A node, a batch with the token under the pointer (-1: none), or an octave.
PointFacts nodeFacts(const MergeTreeData& data, const TreeState& state, std::int64_t level, std::int64_t place);
PointFacts batchFacts(const ViewInput& input, const MergeTreeData& data, const TreeState& state, std::int64_t batch,
                      TokenIndex token);
PointFacts octaveFacts(const MergeTreeData& data, std::int64_t index, TokenIndex cursor);

/// Members of a node, of a batch or of an octave.
std::vector<TokenIndex> membersOf(const MergeTreeData& data, const TreeState& state, std::int64_t level,
                                  std::int64_t place);

} // namespace kvscope
