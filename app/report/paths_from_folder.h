#pragma once

#include "app/study/session.h"

#include <filesystem>

namespace kvscope {

/// The session with every file that it names (captures, lists, calibration curves, files of parameters and of view
/// options) as a path from `folder`, for commands that run there. An empty folder leaves the names of the files alone.
Session withPathsFrom(const std::filesystem::path& folder, Session session);

} // namespace kvscope
