#pragma once

#include "app/live/live_context.h"

#include <optional>
#include <string>
#include <vector>

namespace kvscope {

/// The model that travels with the program; empty: it is not there.
std::string shippedModel();
/// Names (organisation/model) of the models in the Hub's cache: HF_HUB_CACHE, or below HF_HOME, or below ~/.cache.
std::vector<std::string> cachedModels();

/// A text with a code word, a question for it and the expected answer, for the shipped model; nothing without its
/// files.
std::optional<live::LiveDescription> liveExample();

} // namespace kvscope
