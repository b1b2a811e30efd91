#pragma once

#include "app/study/makers/view_data_maker.h"
#include "app/study/session_history.h"

#include <exception>
#include <memory>
#include <optional>
#include <string>

namespace kvscope {

struct Opening {
    std::string name;    ///< a path, or the model of a live context; empty: nothing is being opened
    std::string stage;   ///< of a live context: what its worker does
    double progress = 0; ///< 0..1
};

/// The session, its open capture, and the runner that computes what it shows.
struct OpenSession {
    SessionHistory history;
    std::shared_ptr<const LayerRunner> runner;
    std::shared_ptr<const CaptureReader> capture;  ///< null: none is open
    std::shared_ptr<const CaptureReader> compared; ///< the second one; null: none is open
    std::optional<Cut> cut;                        ///< the session's, resolved in the capture
    std::string cutError;                          ///< why the cut does not fit the capture
    Opening opening;

    const Session& session() const { return history.current(); }
    void resolveCut();
    std::optional<PaneRequest> paneRequest(int pane) const; ///< nothing without this pane, a capture or a cut
    std::optional<ViewDataRequest> dataRequest() const;     ///< without a view; nothing without a cut
};

/// Whether the worker of a live context is gone; the workbench reports that once for all jobs that fail because of it.
bool isLostWorker(const std::exception_ptr& failure);
/// The message of an exception: its what(), or a sentence for one that has none.
std::string messageOf(const std::exception_ptr& failure);

} // namespace kvscope
