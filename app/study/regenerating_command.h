#pragma once

#include "app/study/session.h"

#include <string>
#include <vector>

namespace kvscope {

/// A word as a POSIX shell needs it: quoted when it holds anything but letters, digits and -_./:,=@+%.
std::string shellWord(const std::string& text);
std::string shellLine(const std::vector<std::string>& words);
/// Ascending tokens as "611-626,700", the way --select reads them.
std::string rangeText(const std::vector<TokenIndex>& tokens);

struct FigureRequest {
    std::string viewId;
    std::vector<std::size_t> panes; ///< of the session, in this order
    double width = 900, height = 700, scale = 1;
    std::string theme = "light";
    std::string outPath;
};

/// The command line that makes a figure of the session again without a window.
std::string plotCommand(const Session& session, const FigureRequest& figure);
/// The command line that writes the kept list of a pane again.
std::string evictCommand(const Session& session, std::size_t pane, const std::string& outPath);

} // namespace kvscope
