#pragma once

#include "app/workbench/clock.h"
#include "app/workbench/job_slot.h"

#include <array>
#include <functional>
#include <list>

namespace kvscope {

/// The latest measured results by request key (LRU), so that undo and going back to a head show at once.
class RecentResults {
public:
    explicit RecentResults(std::size_t maxBytes = std::size_t{256} << 20) : m_maxBytes(maxBytes) {}

    std::shared_ptr<const RunResult> find(const std::string& key);
    void insert(const std::string& key, std::shared_ptr<const RunResult> result);
    void clear();
    std::size_t size() const { return m_entries.size(); }

private:
    struct Entry {
        std::string key;
        std::shared_ptr<const RunResult> result;
        std::size_t bytes = 0;
    };
    std::list<Entry> m_entries; ///< most recent first; a few dozen, so a linear search suffices
    std::size_t m_bytes = 0, m_maxBytes;
};

/// The runs of the panes, one slot each. Recent results are cached, so that undo shows them at once.
class PaneJobs {
public:
    struct Pane : JobSlot<RunResult> {
        Pointer measured;              ///< the newest value that was measured, which may be older than `value`
        bool isCurrent = false;        ///< `value` is of the present request
        Clock::TimePoint numbersAsked; ///< start of the newest measuring that no step of a drag cancels
    };
    struct Listener {
        std::function<void(const std::vector<int>& panes)> changed; ///< their state, result or error
        std::function<void(int pane)> progressed;                   ///< its progress alone
        Scheduler::Deliver afterFrame;                              ///< runs the task when what has changed is drawn
    };

    /// The references must outlive it.
    PaneJobs(const OpenSession& open, Scheduler& scheduler, Clock& clock, Listener listener);

    const Pane& at(int pane) const { return m_panes[pane]; }
    void refresh();        ///< requests what the session needs and has not requested yet
    void cancel(int pane); ///< keeps an older result
    void outdate();        ///< the engine changed: the next refresh requests everything again
    void clear();          ///< the capture changed; call after Scheduler::cancelAll

private:
    bool refresh(int index); ///< whether its state has changed
    void submit(int index, const PaneRequest& request);
    void measureLater(int index, const PaneRequest& request);
    void measureAtRest(int index);
    void measureOnTheWay(int index);
    void submitWaiting();
    void noteDelivered(int index);

    const OpenSession& m_open;
    Scheduler& m_scheduler;
    Clock& m_clock;
    Listener m_listener;
    std::unique_ptr<Clock::Timer> m_rest; ///< started anew by each step of a drag
    std::array<Pane, kMaxPanes> m_panes;
    RecentResults m_recent; ///< by pane key
};

} // namespace kvscope
