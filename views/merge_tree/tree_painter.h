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

/// The tree as it stands at the cursor, with its axis and labels; what is to come as outlines.
void paintTree(SceneBuilder& builder, const TreePicture& picture);

/// Value norms by octave, those read so far filled, with the erase line.
void paintOctaves(SceneBuilder& builder, const TreePicture& picture);

} // namespace kvscope
