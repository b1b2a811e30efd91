#pragma once

#include "views/common/pane_identity.h"
#include "views/common/view_facts.h"
#include "views/scene/scene_builder.h"
#include "views/token_strip/strip_layout.h"

namespace kvscope {

enum class StripMode { Panes, State, Score, OnlyInA, OnlyInB };

/// Everything that the drawing of one line needs.
struct StripScene {
    const ViewInput& input;
    const StripLayout& layout;
    StripMode mode;
    const Theme& theme;
    std::string colourMapName;
    std::vector<const PaneData*> panes = {};          ///< with results, in pane order
    std::vector<std::vector<TokenState>> states = {}; ///< of `panes`
    std::vector<PaneIdentity> identities = {};        ///< of `panes`
    const PaneData* active = nullptr;
    std::vector<TokenState> activeStates = {};
    std::vector<float> ranks = {}; ///< [n] 0..1 of the active pane's score; NaN without one
};

/// One line whose text begins at x, y (top of the line).
void drawStripLine(SceneBuilder& builder, const StripScene& strip, std::int64_t line, Point origin);

/// The line of the cut with its handle, if it stands in this line.
void drawStripCut(SceneBuilder& builder, const StripScene& strip, std::int64_t line, Point origin);

} // namespace kvscope
