#pragma once

#include "views/key_projection/projection_marks.h"

#include <string>

namespace kvscope {

/// How the tokens of this range are drawn in a picture of this size; `choice` is the view's option "crowd".
Crowd crowdIn(const ProjectionMarks& marks, const ProjectionData& projection, const Viewport& viewport,
              const Viewport::Range& range, const std::string& choice);

/// Note about the density; empty where every token has a mark.
std::string crowdNote(const ProjectionMarks& marks);

} // namespace kvscope
