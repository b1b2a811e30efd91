#pragma once

#include "app/study/session.h"

#include <optional>

namespace kvscope {

/// Writes the session's cut into the description of its live context, so that a worker reads the context with the cut
/// at which the panes choose tokens. With the cut "none" the description keeps its own, because a worker needs one.
void readAtShownCut(Session& session);

/// The session for opening `context` when that is the session's own live context, with the description's cut or with
/// the session's; nothing for another context. `context` is empty where a file is opened.
std::optional<Session> openedAgain(const Session& session, const SharedText& context);

} // namespace kvscope
