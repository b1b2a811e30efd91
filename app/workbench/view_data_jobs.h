#pragma once

#include "app/workbench/clock.h"
#include "app/workbench/job_slot.h"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace kvscope {

/// The data of the views, one slot each. Hidden views request nothing. While the user drags the range of a view with
/// slow data, its job waits until the drag pauses.
class ViewDataJobs {
public:
    using Changed = std::function<void(const std::string& viewId)>; ///< its data, their progress or error

    /// All references must outlive it.
    ViewDataJobs(const OpenSession& open, Scheduler& scheduler, Clock& clock, Changed changed);

    /// Calls are counted. True when the view's visibility has changed.
    bool show(const View& view);
    bool hide(const View& view);
    void setFrame(const View& view, std::int64_t width, std::int64_t height); ///< device pixels
    std::vector<const View*> shown() const;                                   ///< in the order of allViews()
    DataState stateOf(const View& view) const;

    void refresh();                      ///< requests what the session needs and has not requested yet
    void refreshMoved(const View& view); ///< the user drags the shown range of the view
    void outdate();                      ///< the engine changed: the next refresh requests everything again
    void clear();                        ///< the capture changed; call after Scheduler::cancelAll

private:
    struct Data : JobSlot<ViewData> {
        int shownBy = 0;
        std::int64_t width = 600, height = 400;
        std::string identity;   ///< of the value and of the request
        Clock::TimePoint asked; ///< start of this job, or of the first of those replaced unfinished
        Clock::Duration took{}; ///< duration of the last finished job, or of the unfinished ones since
    };

    void refresh(const View& view, bool isMoving);
    void submit(const View& view, Data& data);
    void submitWaiting();
    ViewDataRequest requestFor(const View& view, const Data& data) const;

    const OpenSession& m_open;
    Scheduler& m_scheduler;
    Clock& m_clock;
    Changed m_changed;
    std::map<std::string, Data> m_data;   ///< by view id
    std::unique_ptr<Clock::Timer> m_rest; ///< expires when the drag pauses
};

} // namespace kvscope
