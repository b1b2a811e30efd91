#pragma once

#include "app/live/live_context.h"
#include "app/study/session.h"

#include <memory>
#include <string>

namespace kvscope {

/// What a session shows: a capture's file, or else a context that a worker reads.
struct SessionSource {
    std::string path;
    SharedText live; ///< used where it is not empty

    bool isEmpty() const { return path.empty() && live.text().empty(); }
    std::string name() const; ///< "needle-1k.h5", "tinylm (live)"
    friend bool operator==(const SessionSource&, const SessionSource&) = default;
};

/// What files made from a session are called by default, without an ending: "needle-1k", "tinylm-live".
std::string stemOf(const Session& session);
SessionSource sourceOf(const Session& session);
/// Sets the source of a session that was made for its capture; for a live context also the cut.
void nameSource(Session& session, const SessionSource& source);
/// Throws Error, Cancelled.
std::shared_ptr<const CaptureReader> openSource(const SessionSource& source, const Checkpoint& checkpoint = {},
                                                const live::StageReport& stage = {});

} // namespace kvscope
