#pragma once

#include "core/capture/capture.h"
#include "views/common/pane_identity.h"
#include "views/common/view_facts.h"
#include "views/scene/scene_builder.h"
#include "views/scene/text_service.h"

#include <memory>
#include <vector>

namespace kvscope {

constexpr double kStripLead = 27; ///< from line to line, logical pixels
constexpr double kScrollBarWidth = 12;
constexpr PickId kScrollBar{PickId::Kind::Handle, -2};
constexpr double kStripGutter = 62; ///< for positions, left of the text
const TextStyle kStripText{FontFace::Interface, 13};

/// Where every token stands when the text is set in lines of a width.
struct StripLayout {
    std::vector<TokenIndex> lineStarts; ///< first token of each line, then n
    std::vector<float> left, width;     ///< [n] from the left end of the text, logical pixels

    std::int64_t lineCount() const { return static_cast<std::int64_t>(lineStarts.size()) - 1; }
    std::int64_t lineOf(TokenIndex token) const;
};

/// As the strip writes a token: spaces inside stay, a token of white space alone is made visible.
std::string stripText(std::string_view bytes);

/// Sets the whole capture: lines break before words, inside them only where they are longer than half a line; the last
/// few layouts are remembered.
std::shared_ptr<const StripLayout> layoutStrip(const CaptureReader& capture, double width, const TextService& text);

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

/// The scroll bar over all tokens: how densely the active pane keeps them, the selected ones and the cut, and those
/// from `begin` to before `end`, which are seen. The whole of it is the handle `kScrollBar`.
void drawScrollBar(SceneBuilder& builder, const StripScene& strip, const Box& track, TokenIndex begin, TokenIndex end);

/// The line of the cut with its handle, if it stands in this line.
void drawStripCut(SceneBuilder& builder, const StripScene& strip, std::int64_t line, Point origin);

} // namespace kvscope
