#pragma once

#include "app/study/session.h"

#include <optional>

namespace kvscope {

/// Names the session's cut in its live context, so that a worker reads it there and the model answers behind what the
/// panes keep. A session without a cut leaves the context its own: a worker cannot read without.
void readAtShownCut(Session& session);

/// The session after its own source was opened once more, a live context with its own cut or with the one that is
/// shown. Nothing for another context; `context` is empty for a file.
std::optional<Session> openedAgain(const Session& session, const SharedText& context);

} // namespace kvscope
