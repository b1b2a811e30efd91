#pragma once

#include "views/view.h"

namespace kvscope {

/// The text itself, coloured by what policies do with its tokens.
const View& tokenStripView();

/// Scroll offset (logical pixels) that brings a token's line to the middle of a strip of this size.
double stripScrollTo(const ViewInput& input, const Viewport& viewport, TokenIndex token);

} // namespace kvscope
