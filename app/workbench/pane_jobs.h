#pragma once

#include "app/workbench/job_slot.h"
#include "app/workbench/recent_results.h"

#include <array>
#include <functional>

namespace kvscope {

/// The runs of the panes, a slot for each. Finished results are kept for a while, so that undo shows them at once.
class PaneJobs {
public:
    using Pane = JobSlot<RunResult>;
    struct Listener {
        std::function<void(int pane)> changed;    ///< its state, result or error
        std::function<void(int pane)> progressed; ///< its progress alone
    };

    /// Both references outlive it.
    PaneJobs(const OpenSession& open, Scheduler& scheduler, Listener listener);

    const Pane& at(int pane) const { return m_panes[static_cast<std::size_t>(pane)]; }
    void refresh();        ///< asks for what the session wants and what is not asked for yet
    void cancel(int pane); ///< an older result stays
    void outdate();        ///< another engine: the next refresh asks for everything again
    void clear();          ///< another capture; no job runs any more

private:
    void refresh(int index);
    void submit(int index, const PaneRequest& request);

    const OpenSession& m_open;
    Scheduler& m_scheduler;
    Listener m_listener;
    std::array<Pane, kMaxPanes> m_panes;
    RecentResults m_recent; ///< by the key of a pane
};

} // namespace kvscope
