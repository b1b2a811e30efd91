// Files and live contexts are opened in one place, so that all callers that open a session can open both.
#include "app/study/session_source.h"

#include "core/capture/open_capture.h"

#include <filesystem>

namespace kvscope {

std::string SessionSource::name() const {
    if (live.text().empty()) return std::filesystem::path(path).filename().string();
    return live::modelName(live::descriptionOf(live.text())) + " (live)";
}

std::string stemOf(const Session& session) {
    if (session.live.text().empty()) return std::filesystem::path(session.capturePath).stem().string();
    return live::modelName(live::descriptionOf(session.live.text())) + "-live";
}

SessionSource sourceOf(const Session& session) { return {session.capturePath, session.live}; }

void nameSource(Session& session, const SessionSource& source) {
    session.capturePath = source.path;
    session.live = source.live;
    if (!source.live.text().empty()) session.cut = live::cutOf(live::descriptionOf(source.live.text()));
}

std::shared_ptr<const CaptureReader> openSource(const SessionSource& source, const Checkpoint& checkpoint,
                                                const live::StageReport& stage) {
    if (source.live.text().empty()) return openCapture(source.path);
    return openLive(live::descriptionOf(source.live.text()), checkpoint, stage);
}

} // namespace kvscope
