#pragma once

#include "views/merge_tree/merge_tree_data.h"
#include "views/merge_tree/tree_layout.h"
#include "views/scene/scene_builder.h"

namespace kvscope {

/// Everything that the tree's painter looks at.
struct TreePicture {
    const ViewInput& input;
    const MergeTreeData& data;
    const TreeState& state;
    const TreeLayout& layout;
    const Theme& theme;
    Colour policy, onPolicy; ///< BalanceKV's colour, and text on it
};

/// How a node is drawn. A merged node is hollow around its number; without room for a number it is a grey bar.
struct NodeLook {
    Colour fill;
    Stroke stroke;
};
NodeLook nodeLook(const Theme& theme, Colour policy, NodeState state, bool holdsMarks);

/// A bar for the sum of the signs, to the right if it is positive and to the left if it is negative; a share of 1, the
/// whole bar, is two standard deviations of fair coins.
void drawImbalance(SceneBuilder& builder, const Theme& theme, Point middle, double half, double share);

/// The tree at the cursor, with axis and labels; future nodes as outlines.
void paintTree(SceneBuilder& builder, const TreePicture& picture);

/// Value norms by octave, those read so far filled, with the erase line.
void paintOctaves(SceneBuilder& builder, const TreePicture& picture);

} // namespace kvscope
