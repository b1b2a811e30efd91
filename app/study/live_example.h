#pragma once

#include "app/live/live_context.h"

#include <optional>
#include <string>

namespace kvscope {

/// The model that travels with the program; empty: it is not there.
std::string shippedModel();

/// A text with a code word, a question for it and the expected answer, for the shipped model; nothing without its
/// files.
std::optional<live::LiveDescription> liveExample();

} // namespace kvscope
