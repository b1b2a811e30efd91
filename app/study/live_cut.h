#pragma once

#include "app/study/session.h"

namespace kvscope {

/// Names the session's cut in its live context, so that a worker reads it there and the model answers behind what the
/// panes keep. A session without a cut leaves the context its own: a worker cannot read without.
void readAtShownCut(Session& session);

} // namespace kvscope
