// The cut of a live context is in the session, which moves it, and in the description by which a worker reads.
#include "app/study/live_cut.h"

#include "app/live/live_context.h"

namespace kvscope {

void readAtShownCut(Session& session) {
    if (session.live.text().empty() || session.cut == "none") return;
    live::LiveDescription description = live::descriptionOf(session.live.text());
    if (live::cutOf(description) == session.cut) return;
    description.cut = session.cut;
    session.live = SharedText(live::textOf(description));
}

} // namespace kvscope
