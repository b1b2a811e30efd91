#pragma once

#include "app/study/regenerating_command.h"
#include "core/base/checkpoint.h"

#include <filesystem>
#include <string>
#include <vector>

namespace kvscope {

class LayerRunner;

struct ReportOptions {
    std::vector<std::string> views; ///< ids; empty: all views that have something to show
    std::string command;            ///< the command that regenerates the page; empty: not stated
    SavedLive saved = {};           ///< of a live context
};

/// One self-contained HTML page about a session on its open capture: facts, measures, a figure per view (inline SVG,
/// with its finding, its command and, where short, its table), the kept lists of all panes and heads of the layer, and
/// the commands that write each. File names instead of paths, so that it can be sent around. The same session gives the
/// same page. Needs Qt's fonts, no display. Throws Error (an unknown view, a pane without a result) or Cancelled.
std::string reportPage(const Session& session, const std::shared_ptr<const CaptureReader>& capture,
                       const LayerRunner& runner, const ReportOptions& options, const Checkpoint& checkpoint);

/// The path of the page: FILE.html itself, else index.html in a folder of that name, which is created if missing.
/// Throws Error when there can be no such folder.
std::string reportPathOf(const std::string& out);

/// Writes the page atomically and returns its path. Throws Error.
std::string writeReport(const std::string& out, const std::string& page);

/// The session with every file that it names (captures, lists, calibration curves, files of parameters and of view
/// options) as a path from `folder`, for commands that run there. With an empty folder only file names remain.
Session withPathsFrom(const std::filesystem::path& folder, Session session);

} // namespace kvscope
