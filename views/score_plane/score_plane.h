#pragma once

#include "views/common/token_marks.h"

#include <optional>
#include <string>

namespace kvscope {

/// One head of a Compactor result in the plane of its two standardised scores.
struct ScorePlane {
    TokenMarks marks;         ///< x: z(attention), y: z(leverage); of the tokens before the cut
    std::vector<float> total; ///< [cut] the score that decides
    double lambda = 0;        ///< score = x + lambda y
    /// Score between the worst token kept by choice and the best evicted one; NaN where nothing was kept by choice.
    double threshold = 0;
    std::int64_t unplaced = 0; ///< tokens before the cut without scores (skipped, or gone in an earlier block)

    bool hasLine() const { return threshold == threshold; }
};

/// Why the active pane has no such plane, with what to choose instead; empty when it has one.
std::string whyNoPlane(const ViewInput& input);

/// The plane of the active pane, which must have one.
ScorePlane scorePlaneOf(const ViewInput& input);

/// How many of the tokens kept by choice would also be the best by one score alone.
struct Deciders {
    std::int64_t kept = 0, byAttention = 0, byLeverage = 0, byBoth = 0;
};
Deciders decidersOf(const ScorePlane& plane);

/// The lambda at which the line of the current threshold passes through a point, for dragging; clamped to 0..3. Nothing
/// without a line, nor at the mean leverage (y = 0), where the lines of all lambdas cross.
std::optional<double> lambdaThrough(const ScorePlane& plane, Point at);
/// Tokens kept when the line moves to a point at the present lambda, protected ones included, at least 1.
std::int64_t budgetThrough(const ScorePlane& plane, Point at);

/// The part of the line x + lambda y = threshold inside the ranges of a frame, in data coordinates; empty: outside.
std::vector<Point> lineInside(const ScorePlane& plane, const PlotFrame& frame);

} // namespace kvscope
