#pragma once

#include "views/common/view_facts.h"
#include "views/scene/axes.h"

#include <cstdint>
#include <vector>

namespace kvscope {

/// Tokens as marks at places in data coordinates. The mark tells the state: evicted hollow and drawn first, protected
/// square, kept filled and drawn last.
struct TokenMarks {
    std::vector<Point> places;      ///< [n] NaN in x or y: the token has none
    std::vector<TokenState> states; ///< [n]
    double keptRadius = 2.3, evictedRadius = 2.0;

    bool hasPlace(TokenIndex token) const;
};

constexpr std::int64_t kMostTokenMarks = 20'000;
/// Stride over the evicted tokens: 1 for up to kMostTokenMarks of them.
std::int64_t markStride(const TokenMarks& marks);

/// Draws the tokens with rings around the selected and the hovered ones. Of more than kMostTokenMarks evicted tokens
/// only every stride-th is drawn; returns the number of marks left out.
std::int64_t drawTokenMarks(SceneBuilder& builder, const PlotFrame& frame, const TokenMarks& marks,
                            const TokenFocus& focus, const Theme& theme);

/// A token's mark, to be ringed.
struct RingedMark {
    TokenIndex token = -1;
    Point at;
    double radius = 2.3;
    Marker marker = Marker::Circle; ///< or Square
    Colour fill = kTransparent;
    Stroke stroke = {};
};
/// Draws all casings below all rings, and the rings below the marks, which are drawn once more, so that the states of
/// tokens close together stay visible.
void drawRingedMarks(SceneBuilder& builder, const std::vector<RingedMark>& marks, const Theme& theme);

/// The ring around the hovered token, the same in every view. It is not pickable, because other tokens lie inside it.
void drawHoverRing(SceneBuilder& builder, Point at, const Theme& theme);
/// That ring with the token's own mark on top, so that a crowd does not hide it.
void drawHoveredMark(SceneBuilder& builder, const RingedMark& mark, const Theme& theme);

/// How many tokens with a place lie outside the frame's ranges, by state.
struct BeyondRange {
    std::int64_t kept = 0, guarded = 0, evicted = 0;
    std::int64_t all() const { return kept + guarded + evicted; }
};
BeyondRange beyondRange(const PlotFrame& frame, const TokenMarks& marks);

/// "kept 1,024", "evicted 3,072", "protected 32" where there are any.
std::vector<LegendEntry> tokenLegend(const TokenMarks& marks, const Theme& theme);

} // namespace kvscope
