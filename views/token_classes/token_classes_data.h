#pragma once

#include "core/capture/token_classes.h"
#include "views/view_data.h"

namespace kvscope {

/// The classes of all tokens of the capture; those of positions depend on the cut and are made by the view.
struct TokenClassesData : ViewData {
    TokenClasses text, segments, repeats;
};

} // namespace kvscope
