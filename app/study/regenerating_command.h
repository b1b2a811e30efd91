#pragma once

#include "app/study/session.h"

#include <optional>
#include <string>
#include <vector>

namespace kvscope {

/// A word as a POSIX shell needs it: quoted when it holds anything but letters, digits and -_./:,=@+%. Control
/// characters and bytes that are no UTF-8 become $'\xff', which bash, zsh and ksh read.
std::string shellWord(const std::string& text);
std::string shellLine(const std::vector<std::string>& words);
/// Ascending tokens as "611-626,700", the way --select reads them.
std::string rangeText(const std::vector<TokenIndex>& tokens);

struct FigureRequest {
    std::string viewId;
    std::optional<std::size_t> pane; ///< only this one; empty: all panes of the session
    double width = 900, height = 700, scale = 1;
    std::string theme = "light";
    bool outlines = false; ///< texts as shapes
    std::string outPath;
};

/// The files that a live context's session and its capture were saved to; empty: none, the command takes the default
/// names (stemOf), since no line holds the text.
struct SavedLive {
    std::string session, capture;
};

/// The command line that makes a figure of the session again without a window. Options of the view are stated where
/// they differ from their defaults, and all of them for a live context. Throws Error for an unknown view.
std::string plotCommand(const Session& session, const FigureRequest& figure, const SavedLive& saved = {});
/// The command line that writes the kept list of a pane again, of the session's layer or of all.
std::string evictCommand(const Session& session, std::size_t pane, const std::string& outPath,
                         const SavedLive& saved = {}, bool allLayers = false);

} // namespace kvscope
