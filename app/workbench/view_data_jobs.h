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

/// The data of the views, a slot for each. A view that nobody sees asks for nothing. While somebody moves through a
/// view whose data take long, its job waits until the hand rests.
class ViewDataJobs {
public:
    using Changed = std::function<void(const std::string& viewId)>; ///< its data, their progress or error

    /// All references outlive it.
    ViewDataJobs(const OpenSession& open, Scheduler& scheduler, Clock& clock, Changed changed);

    /// Calls are counted. True: the view is shown now and was not before, or the other way round.
    bool show(const View& view);
    bool hide(const View& view);
    void setFrame(const View& view, std::int64_t width, std::int64_t height); ///< device pixels
    std::vector<const View*> shown() const;                                   ///< in the order of allViews()
    DataState stateOf(const View& view) const;

    void refresh();                      ///< asks for what the session wants and what is not asked for yet
    void refreshMoved(const View& view); ///< the hand moves: another part of the view is shown
    void outdate();                      ///< another engine: the next refresh asks for everything again
    void clear();                        ///< another capture; no job runs any more

private:
    struct Data : JobSlot<ViewData> {
        int shownBy = 0;
        std::int64_t width = 600, height = 400;
        std::string identity;   ///< of the value, and of what is asked for
        Clock::TimePoint asked; ///< when this job was asked for, or the first of those that were replaced unfinished
        Clock::Duration took{}; ///< what the last finished job took, or the unfinished ones since
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
    std::unique_ptr<Clock::Timer> m_rest; ///< expires when the hand rests
};

} // namespace kvscope
