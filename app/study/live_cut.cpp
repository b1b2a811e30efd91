// The cut of a live context is stored twice: in the session, where it moves, and in the description that workers read.
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

std::optional<Session> openedAgain(const Session& session, const SharedText& context) {
    Session again = session;
    readAtShownCut(again);
    if (context != session.live && context != again.live) return std::nullopt;
    again.live = context;
    if (!context.text().empty() && session.cut != "none") again.cut = live::cutOf(live::descriptionOf(context.text()));
    return again;
}

} // namespace kvscope
